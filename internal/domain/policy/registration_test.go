package policy

import (
	"strings"
	"testing"
)

func TestWhichAddressesOfTermsAreTaken(t *testing.T) {
	for address, taken := range map[string]bool{
		"":                                   true,
		"https://example.org/terms":          true,
		"https://example.org/terms?v=2#part": true,
		"https://xn--bcher-kva.example/agb":  true,
		"http://example.org/terms":           false,
		"javascript:alert(1)":                false,
		"data:text/html,x":                   false,
		"HTTPS://example.org":                false, // one way to write it
		"https:example.org":                  false,
		"https://":                           false,
		"https:///terms":                     false,
		"https://a@example.org/":             false,
		"https://example.org/a b":            false,
		"https://example.org/\\x":            false,
		"https://bücher.example/":            false,
		"//example.org/terms":                false,
		"/terms":                             false,
		"https://example.org/\n":             false,
		"https://example.org/%zz":            false,
		"https://example.org/" + strings.Repeat("a", MaxURI-20): true,
		"https://example.org/" + strings.Repeat("a", MaxURI-19): false,
	} {
		wrong := Registering{TermsURI: address, PrivacyURI: address}.RegisteringViolations("policy.")
		if taken != (len(wrong) == 0) ||
			!taken && (len(wrong) != 2 || wrong[0].Field != "policy.termsUri" ||
				wrong[1].Field != "policy.privacyUri") {
			t.Errorf("%q: %v", address, wrong)
		}
	}
}

func TestRegistrationIsForOrganizationsToSayAndWaitsForEveryNode(t *testing.T) {
	for _, r := range []Registering{{Registration: ToAll}, {Registration: ToDomains}, {TermsURI: "https://example.org"},
		{PrivacyURI: "https://example.org"}} {
		p := Policy{Registering: r, SignIn: SignIn{DefaultProvider: "idp_1"}}
		if since := (Policy{}).DiffTo(p).Since(); since != 4 {
			t.Errorf("%+v is known since %d", r, since)
		}
		if since := p.DiffTo(Policy{}).Since(); since != 4 {
			t.Errorf("taking back %+v is known since %d", r, since)
		}
		if wrong := (Policy{Registering: r}).InstallationViolations(""); len(wrong) != 1 {
			t.Errorf("the installation may say %+v: %v", r, wrong)
		}
		if got := Effective(Policy{Registering: r}, Policy{}).Registering; got != (Registering{}) {
			t.Errorf("the installation has said %+v", got)
		}
		if got := Effective(Policy{}, p).Registering; got != r {
			t.Errorf("the organization has said %+v, but %+v counts", r, got)
		}
	}
}
