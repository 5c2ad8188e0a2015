package browser_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
)

// withMail starts an installation that sends mail.
func withMail(t *testing.T, change ...func(*server.Config)) (*installation, *mailtest.Sink) {
	t.Helper()
	sink := mailtest.Start(t)
	return installed(t, append(change,
		func(c *server.Config) { c.SMTPURL, c.SMTPFrom = sink.URL, "Signet <no-reply@signet.test>" })...), sink
}

var linkInMail = regexp.MustCompile(`https?://\S+`)

// mailTo waits for a mail to an address, and gives its link.
func mailTo(t *testing.T, sink *mailtest.Sink, address string) string {
	t.Helper()
	for {
		if m := sink.Next(t); m.To == address {
			link := linkInMail.FindString(m.Text)
			if u, err := url.Parse(link); err != nil || u.Query().Get("token") == "" {
				t.Fatalf("no link in %s", m.Text)
			}
			return link
		}
	}
}

// invite invites somebody into the default organization.
func (i *installation) invite(email string, more map[string]any) (id string) {
	i.t.Helper()
	body := map[string]any{"email": email}
	for name, value := range more {
		body[name] = value
	}
	return i.api("POST", "/v1/orgs/"+i.org+"/invitations", body)["invitationId"].(string)
}

// names fills in who somebody is.
func (v *visitor) names(first, last string) {
	v.t.Helper()
	v.WaitFor("#firstName")
	v.Fill("#firstName", first)
	v.Fill("#lastName", last)
}

func TestAnInvitationIsAcceptedWithAPassword(t *testing.T) {
	browser.NeedAxe(t)
	i, sink := withMail(t)
	b := browser.Start(t)
	id := i.invite("nia@mail.test", map[string]any{"roles": []string{"ORG_OWNER_VIEWER"}, "language": "en"})
	link := mailTo(t, sink, "nia@mail.test")

	v := i.visitor(t, b)
	v.Open(link)
	v.sees("main", "to join Default")
	v.sees("main", "nia@mail.test")
	v.saysNothingBad("invitation")
	if strings.Contains(v.At(), "token") {
		t.Errorf("the token is in the address: %s", v.At())
	}
	v.Submit(`a[href*="with=password"]`)
	v.saysNothingBad("new account")
	v.names("Nia", "New")
	v.Fill("#newPassword", otherPassword)
	v.Fill("#repeatPassword", "not the same")
	v.Submit("main form button.primary")
	v.WaitFor("#repeatPassword-problem, .problem")
	v.Fill("#newPassword", otherPassword)
	v.Fill("#repeatPassword", otherPassword)
	v.Submit("main form button.primary")
	v.WaitFor("main")
	v.WaitUntilAt(i.url + "/account")
	v.sees("main", "nia@mail.test")
	v.quiet()

	if got := i.api("GET", "/v1/orgs/"+i.org+"/invitations/"+id,
		nil)["invitation"].(map[string]any); got["state"] != "STATE_ACCEPTED" {
		t.Errorf("%v", got)
	}
	again := i.visitor(t, b)
	again.Open(i.ask())
	again.name("nia@mail.test")
	again.password(otherPassword)
	again.arrives()

	used := i.visitor(t, b)
	used.Open(link)
	used.sees("h1", "already accepted")
	used.saysNothingBad("used")
}
