package hosted

import (
	"html"
	"testing"

	"github.com/signet-idm/signet/internal/domain/policy"
)

// A login name is the user name, @ and a domain: no form offers a name that makes two of them.
func TestEveryFormOffersANameWithoutAnAt(t *testing.T) {
	w := ledWorld(t)
	w.rules(opened(policy.ToAll))
	shop := w.application("Shop")
	taken := w.person(w.org, true)
	register := func(email string) *page {
		w.browser().get("/login/register").post("email", email).shows(200)
		return w.browser().get(w.link(email))
	}
	invited := func(email string) *browser {
		w.api("POST", "/v1/orgs/"+w.org+"/invitations", map[string]any{"email": email})
		b := w.browser()
		b.get(w.link(email))
		return b
	}
	through := func(name any, from func(b *browser) *page) *page {
		w.who, w.says = "new", map[string]any{"preferred_username": name, "email": "mara@corp.test"}
		return w.opens(from(w.browser()).press())
	}
	arrives := func(b *browser) *page { return b.authorize(shop) }
	for name, tt := range map[string]struct {
		form *page
		want string
	}{
		"registering":                         {register("colleague@acme.test"), "colleague"},
		"registering where the name is taken": {register(taken.name + "@acme.test"), taken.name + "2"},
		"joining with a password":             {invited("one@acme.test").get("/login/invitation?with=password"), "one"},
		"joining with a passkey":              {invited("two@acme.test").get("/login/invitation?with=passkey"), "two"},
		"joining where the name is taken": {
			invited(taken.name + "@corp.test").get("/login/invitation?with=password"), taken.name + "2"},
		"through a provider that says an address":      {through("mara@corp.test", arrives), "mara"},
		"through a provider that says another address": {through("boss@corp.test", arrives), "boss"},
		"through a provider that says a name":          {through("mara", arrives), "mara"},
		"through a provider that says no name":         {through(nil, arrives), "mara"},
		"joining through a provider": {through("mara@corp.test", func(*browser) *page {
			return invited("three@acme.test").get("/login/invitation")
		}), "mara"},
	} {
		t.Run(name, func(t *testing.T) {
			offered, there := "", false
			for _, m := range textField.FindAllStringSubmatch(tt.form.shows(200).body, -1) {
				if m[1] == "userName" {
					offered, there = html.UnescapeString(m[2]), true
				}
			}
			if !there || offered != tt.want {
				t.Errorf("%q is offered, want %q", offered, tt.want)
			}
		})
	}
}
