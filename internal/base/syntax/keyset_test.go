package syntax

import (
	"strings"
	"testing"
)

func TestKeySets(t *testing.T) {
	const (
		ed  = `{"kty":"OKP","crv":"Ed25519","x":"Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"`
		out = `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"}]}`
	)
	set := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	eleven := strings.Split(strings.Repeat(ed+"}\n", 11), "\n")[:11]
	for _, c := range []struct{ name, text, form, problem string }{
		{"a key", set(ed + `}`), out, ""},
		{"its form", out, out, ""},
		{"more than a key", " {\"more\": 1, \"keys\": [" + ed + `,"note":"mine"}]}`, out, ""},
		{"ten", set(eleven[:10]...), set(eleven[:10]...), ""},
		{"eleven", set(eleven...), "", "at most 10 keys"},
		{"none", set(), "", "at least one"},
		{"no list", `{"keys":null}`, "", "RFC 7517"},
		{"a list", `[` + ed + `}]`, "", "RFC 7517"},
		{"no JSON", `keys`, "", "RFC 7517"},
		{"two", out + out, "", "RFC 7517"},
		{"private", set(ed + `,"d":"Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"}`), "", "not a private one"},
		{"symmetric", set(`{"kty":"oct","k":"AAAA"}`), "", "must be an RSA, ECDSA or Ed25519 key"},
		{"unknown", set(`{"kty":"x"}`), "", "must be an RSA, ECDSA or Ed25519 key"},
		{"for encryption", set(ed + `,"use":"enc"}`), "", `another "use"`},
		{"a short RSA key", set(`{"kty":"RSA","n":"` + strings.Repeat("x", 171) + `","e":"AQAB"}`), "", "2048"},
		{"a large exponent", set(`{"kty":"RSA","n":"` + strings.Repeat("x", 342) + `","e":"fw8AAQ"}`), "", "65537"},
		{"an exponent of 1", set(`{"kty":"RSA","n":"` + strings.Repeat("x", 342) + `","e":"AQ"}`), "", "RSA"},
		{"long", out + strings.Repeat(" ", MaxKeySet), "", "characters"},
	} {
		form, problem := KeySet(c.text)
		if form != c.form || (problem == nil) != (c.problem == "") ||
			problem != nil && !strings.Contains(problem.Message, c.problem) {
			t.Errorf("%s: %q, %v", c.name, form, problem)
		}
	}
}
