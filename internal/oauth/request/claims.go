package request

import (
	"encoding/json"
	"strings"
)

// MaxClaims of the parameter, in bytes.
const MaxClaims = 4000

const maxSubject = 100 // longer than any identifier

// Claims is what an application asks for. What it asks of the user info needs no notice: that tells everything that the
// scopes allow.
type Claims struct {
	Names   []string // of the claims in the ID token, in any order
	Subject string   // who the person has to be; empty: anybody
	Levels  []string // of which one has to be reached, by the claim acr; nil: any
	Wished  []string // that are preferred, by the claim acr, the best one first
	Timed   bool     // it has to be known when the person proved to be there, by the claim auth_time
}

// parameter is the text as JSON.
type parameter struct {
	IDToken  map[string]*claim `json:"id_token"`
	UserInfo map[string]*claim `json:"userinfo"`
}

// claim is how one is asked for; nil for no particular way.
type claim struct {
	Essential bool  `json:"essential"`
	Value     any   `json:"value"`
	Values    []any `json:"values"`
}

// texts are the values that are accepted, as far as they are texts; nil where any is.
func (c *claim) texts() []string {
	if c == nil || c.Value == nil && c.Values == nil {
		return nil
	}
	texts := []string{}
	for _, value := range append([]any{c.Value}, c.Values...) {
		if text, ok := value.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// ReadClaims reads the parameter. The problem is empty where there is none.
func ReadClaims(text string) (asked Claims, problem string) {
	if text == "" {
		return Claims{}, ""
	}
	var p parameter
	if len(text) > MaxClaims || !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") ||
		json.Unmarshal([]byte(text), &p) != nil {
		return Claims{}, "must be a JSON object with id_token or userinfo, as in section 5.5 of OpenID Connect Core, of at most 4000 bytes"
	}
	for name := range p.IDToken {
		asked.Names = append(asked.Names, name)
	}
	if people := p.IDToken["sub"].texts(); people != nil {
		if len(people) != 1 || people[0] == "" || len(people[0]) > maxSubject {
			return Claims{}, "must name one person as sub"
		}
		asked.Subject = people[0]
	}
	at := p.IDToken["auth_time"]
	asked.Timed = at != nil && at.Essential
	if acr := p.IDToken["acr"]; acr != nil && acr.Essential {
		asked.Levels = acr.texts()
	} else {
		asked.Wished = acr.texts()
	}
	return asked, ""
}
