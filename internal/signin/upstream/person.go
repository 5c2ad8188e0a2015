package upstream

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/idp"
)

const (
	maxMethod  = 50  // characters of an amr value
	maxSession = 255 // characters of a sid
	maxTenant  = 200 // characters
)

// plain tells whether a text has content, a limit and no control characters.
func plain(s string, limit int) bool {
	return s != "" && utf8.RuneCountInString(s) <= limit && !strings.ContainsFunc(s, unicode.IsControl)
}

// person takes names, language and e-mail from what a provider sent; of several documents the first that has one
// counts. What is no text, too long, or has control characters is passed over.
func person(who *idp.Identity, names idp.Claims, documents ...tokenClaims) {
	take := func(into *string, name string, limit int) {
		for _, c := range documents {
			if s, ok := c.Text(name); ok && *into == "" && plain(s, limit) {
				*into = s
			}
		}
	}
	take(&who.UserName, cmp.Or(names.UserName, "preferred_username"), syntax.MaxName)
	take(&who.FirstName, cmp.Or(names.FirstName, "given_name"), syntax.MaxName)
	take(&who.LastName, cmp.Or(names.LastName, "family_name"), syntax.MaxName)
	take(&who.NickName, cmp.Or(names.NickName, "nickname"), syntax.MaxName)
	take(&who.Language, cmp.Or(names.Language, "locale"), syntax.MaxLanguage)
	take(&who.Email, cmp.Or(names.Email, "email"), syntax.MaxName)
	if _, problem := syntax.Email(who.Email); problem != nil {
		who.Email = ""
	}
	if who.FirstName == "" && who.LastName == "" {
		var name string
		take(&name, "name", syntax.MaxName)
		name = strings.TrimSpace(name)
		if at := strings.LastIndexByte(name, ' '); at > 0 {
			who.FirstName, who.LastName = strings.TrimSpace(name[:at]), name[at+1:]
		} else {
			who.FirstName = name
		}
	}
}

// complete tells whether a document has all that people are registered with.
func complete(names idp.Claims, c tokenClaims) bool {
	var who idp.Identity
	person(&who, names, c)
	return who.UserName != "" && who.FirstName != "" && who.LastName != "" && who.Email != ""
}

// verified tells whether a provider says that an e-mail is the person's. Only the claim that is about the e-mail of
// OpenID Connect says so, and only in a document that has this e-mail.
func verified(who *idp.Identity, names idp.Claims, documents ...tokenClaims) bool {
	if who.Email == "" || names.Email != "" && names.Email != "email" {
		return false
	}
	for _, c := range documents {
		if email, _ := c.Text("email"); email != who.Email {
			continue
		}
		if _, said := c["email_verified"]; said {
			return c.True("email_verified")
		}
	}
	return false
}
