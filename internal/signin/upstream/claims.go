package upstream

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

const (
	maxSubject = 255 // characters, as OpenID Connect has it
	maxList    = 20  // values of a list that count
)

// tokenClaims are what an issuer says, each as it was sent.
type tokenClaims map[string]json.RawMessage

// Text is a claim that is a string. What cannot be told from another text once it is read is none: broken surrogates
// all read alike.
func (c tokenClaims) Text(name string) (string, bool) {
	return text(c[name])
}

func text(raw json.RawMessage) (string, bool) {
	var s string
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil ||
		strings.ContainsRune(s, utf8.RuneError) {
		return "", false
	}
	return s, true
}

// Texts is a claim that is a string or a list of them. A list with anything else in it is none.
func (c tokenClaims) Texts(name string) []string {
	if one, ok := c.Text(name); ok {
		return []string{one}
	}
	var list []json.RawMessage
	if json.Unmarshal(c[name], &list) != nil {
		return nil
	}
	var all []string
	for _, raw := range list[:min(len(list), maxList)] {
		one, ok := text(raw)
		if !ok {
			return nil
		}
		all = append(all, one)
	}
	return all
}

// True tells whether a claim is true. Some issuers send it as a string.
func (c tokenClaims) True(name string) bool {
	raw := string(bytes.TrimSpace(c[name]))
	return raw == "true" || raw == `"true"`
}

// Time is a claim that is a number of seconds since 1970.
func (c tokenClaims) Time(name string) (time.Time, bool) {
	var seconds float64
	if raw := bytes.TrimSpace(c[name]); len(raw) == 0 || raw[0] == 'n' || json.Unmarshal(raw, &seconds) != nil {
		return time.Time{}, false
	}
	if seconds <= 0 || seconds > 1<<36 {
		return time.Time{}, false
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), true
}

// Subject is the subject of a token: a string, exactly as sent. Errors: *failure.Failure.
func (c tokenClaims) Subject() (string, error) { return c.SubjectIn("sub", false) }

// integer is the one way to write a whole number. 1e3 and 1000.0 are other ways to write 1000, and would be other
// people.
var integer = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,39})$`)

// SubjectIn is what tells a person apart, in a field of any name. A number counts only where that is said, and only
// written as a whole one; it is never read as a number, so it is exact however large it is. Errors: *failure.Failure.
func (c tokenClaims) SubjectIn(name string, numbers bool) (string, error) {
	wrong := failure.New(failure.Subject,
		"the field that tells people apart is missing, or is not a text of 1 to 255 characters")
	raw := bytes.TrimSpace(c[name])
	if numbers {
		wrong.Hint += " or a whole number"
		if integer.Match(raw) {
			return string(raw), nil
		}
	}
	s, ok := text(raw)
	if !ok || s == "" || utf8.RuneCountInString(s) > maxSubject || strings.ContainsFunc(s, unicode.IsControl) {
		return "", wrong
	}
	return s, nil
}
