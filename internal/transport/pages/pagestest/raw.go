package pagestest

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/signet-idm/signet/internal/domain/access"
)

var (
	// What programs call things. The number of a request is none of them: people pass it on when they ask for help.
	identifier = regexp.MustCompile(
		`\b(app|con|dev|fac|fam|grp|idp|ins|inv|ips|key|lgo|lnk|lst|msg|oat|ofr|org|pac|pat|pgr|pky|prj|ses|sgi|sig|usr|whk)_\w+`)
	scopeName = regexp.MustCompile(
		`urn:[a-z]+:\S*|\boffline_access\b|\b(` + strings.Join(access.APIScopeNames, "|") + `)\b`)
	// These are words as well: they are scopes where nothing stands beside them.
	wordScopes = []string{"openid", "profile", "email", "phone"}
)

// Raw finds the scopes and identifiers that somebody who looks at a page, or hears it read out, comes across.
func Raw(page string) (found []string) {
	look := func(text string) {
		found = append(found, identifier.FindAllString(text, -1)...)
		found = append(found, scopeName.FindAllString(text, -1)...)
		if word := strings.TrimSpace(text); slices.Contains(wordScopes, word) {
			found = append(found, word)
		}
	}
	tokens := html.NewTokenizer(strings.NewReader(page))
	within := ""
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return found
		case html.TextToken:
			if within != "script" && within != "style" {
				look(string(tokens.Text()))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := tokens.Token()
			within = tag.Data
			hidden := slices.Contains(tag.Attr, html.Attribute{Key: "type", Val: "hidden"})
			for _, a := range tag.Attr {
				if slices.Contains([]string{"title", "alt", "aria-label", "placeholder"}, a.Key) ||
					a.Key == "value" && tag.Data == "input" && !hidden {
					look(a.Val)
				}
			}
		case html.EndTagToken:
			within = ""
		}
	}
}
