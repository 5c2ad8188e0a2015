//go:build cost

package pages

import (
	"net/url"
	"testing"

	"github.com/signet-idm/signet/test/costtest"
)

func TestNothingThatAPageReadsCostsMuch(t *testing.T) {
	const form = 64 << 10
	for name, read := range map[string]func(text string){
		"languages":        func(s string) { chooseLanguage("", s, s) },
		"an own language":  func(s string) { chooseLanguage(s[:min(len(s), 40)], "", "") },
		"a form":           func(s string) { Readable(url.Values{s: {s}}) },
		"a redirect":       func(s string) { formTarget(s) },
		"a link":           func(s string) { _, _ = Outward(s) },
		"a link within it": func(s string) { To("/login", url.Values{"to": {s}}) },
	} {
		t.Run(name, func(t *testing.T) { costtest.Bounded(t, form, read) })
	}
}
