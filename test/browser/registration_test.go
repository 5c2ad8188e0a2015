package browser_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
)

const termsOfUse = "https://shop.test/terms"

// registering is an installation that sends mail.
func registering(t *testing.T, change ...func(*server.Config)) (*installation, *mailtest.Sink) {
	t.Helper()
	sink := mailtest.Start(t)
	return installed(t, append(change,
		func(c *server.Config) { c.SMTPURL, c.SMTPFrom = sink.URL, "no-reply@id.test" })...), sink
}

// registers sets who can register in the default organization.
func (i *installation) registers(mode string, more ...string) {
	i.t.Helper()
	policy := map[string]any{"registration": mode}
	for n := 0; n < len(more); n += 2 {
		policy[more[n]] = more[n+1]
	}
	i.api("PUT", "/v1/orgs/"+i.org+"/policy", map[string]any{"policy": policy})
}

const (
	toAll     = "REGISTRATION_MODE_OPEN"
	toDomains = "REGISTRATION_MODE_PROVEN_DOMAINS"
)

// linkTo waits for the mail to somebody, and gives the link in it.
func (i *installation) linkTo(sink *mailtest.Sink, to string) string {
	i.t.Helper()
	m := sink.Next(i.t)
	link := regexp.MustCompile(regexp.QuoteMeta(i.url) + `/register\S+`).FindString(m.Text)
	if m.To != to || link == "" {
		i.t.Fatalf("the mail to %s says %s", m.To, m.Text)
	}
	return link
}

// starts types an address on the page that asks for it.
func (v *visitor) starts(email string) {
	v.t.Helper()
	v.sees("h1", "Create your account")
	v.Fill("#email", email)
	v.Submit("main form button.primary")
	v.sees("h1", "Check your inbox")
}

func (v *visitor) newPassword() {
	v.t.Helper()
	v.Fill("#newPassword", "a long word with Sense 7")
	v.Fill("#repeatPassword", "a long word with Sense 7")
	v.Submit("main form button.primary")
}

func TestRegistering(t *testing.T) {
	browser.NeedAxe(t)
	i, sink := registering(t)
	i.registers(toAll, "termsUri", termsOfUse, "privacyUri", "https://shop.test/privacy")
	v := i.visitor(t, browser.Start(t))
	v.Open(i.ask("prompt", "create"))
	v.saysNothingBad("address")
	v.starts("new@mail.test")
	v.saysNothingBad("mail sent")
	v.Open(i.linkTo(sink, "new@mail.test"))
	v.names("New", "Person")
	v.saysNothingBad("new account")
	v.newPassword()
	v.sees("[role=alert]", "accept the terms")
	v.saysNothingBad("new account, with what is missing")
	if strings.Contains(v.At(), "sgn_") {
		t.Errorf("the code is in the address: %s", v.At())
	}
	v.Click("#terms")
	v.newPassword()
	v.arrives()
	v.Open(i.url + "/account")
	v.sees("main", termsOfUse)
	sink.None(t) // nobody is told what they have just done themselves
}
