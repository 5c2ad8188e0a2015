//go:build joining

package browser_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/browser"
)

// oneRecord is a DNS with one record.
type oneRecord struct{ name, value string }

func (r *oneRecord) LookupTXT(_ context.Context, name string) ([]string, error) {
	if strings.TrimSuffix(name, ".") == r.name {
		return []string{r.value}, nil
	}
	return nil, nil
}

// Every mode of registration, and every way in which it ends.
func TestJoiningByRegistration(t *testing.T) {
	browser.NeedAxe(t)
	dns := &oneRecord{}
	i, sink := registering(t, func(c *server.Config) { c.Resolver = dns })
	b := browser.Start(t)
	i.person("ann") // ann@mail.test

	t.Run("off: nothing is offered, and prompt=create is the sign-in", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.WaitFor("#loginName")
		if v.Has(`a[href*="/login/register"]`) {
			t.Error("an account is offered")
		}
		v.Open(i.ask("prompt", "create"))
		v.WaitFor("#loginName")
		v.Open(i.url + "/login/register")
		v.WaitFor("#loginName")
	})

	i.registers(toAll)
	t.Run("open: from the link on the sign-in page, and back by it", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask())
		v.Submit(`a[href*="/login/register"]`)
		v.sees("h1", "Create your account")
		v.Submit(`main p.aside a`)
		v.WaitFor("#loginName")
		v.Submit(`a[href*="/login/register"]`)
		v.starts("open@mail.test")
		v.Open(i.linkTo(sink, "open@mail.test"))
		v.names("New", "Person")
		v.newPassword()
		v.arrives()
		// The account is there.
		v = i.visitor(t, b)
		v.Open(i.ask())
		v.name("open@mail.test")
		v.password("a long word with Sense 7")
		v.arrives()
	})

	t.Run("in the language of the browser, mail included", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Header("Accept-Language", "de-CH")
		v.Open(i.ask("prompt", "create"))
		v.Fill("#email", "german@mail.test")
		v.Submit("main form button.primary")
		v.sees("h1", "Prüfen Sie Ihren Posteingang")
		if m := sink.Next(t); m.Subject != "Legen Sie Ihr Konto an" {
			t.Errorf("the mail is %q", m.Subject)
		}
	})

	t.Run("with a passkey", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Authenticator(true)
		v.Open(i.ask("prompt", "create"))
		v.starts("passkey@mail.test")
		v.Open(i.linkTo(sink, "passkey@mail.test"))
		v.Submit("button[value=passkey]")
		v.sees("[role=alert]", "fill this in") // before anything is made on the device
		v.names("New", "Person")
		v.Submit("button[value=passkey]")
		v.sees("h1", "passkey")
		v.saysNothingBad("passkey")
		v.Fill("#passkeyName", "My telephone")
		v.Click("button.primary")
		v.arrives()
		v.Forget()
		v.Open(i.ask()) // it is all that is needed from then on
		v.arrives()
	})

	t.Run("known addresses look the same, and get another mail", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask("prompt", "create"))
		v.starts("ann@mail.test")
		if m := sink.Next(t); m.Subject != "You already have an account" || !strings.Contains(m.Text, i.url+"/login") ||
			!strings.Contains(m.Text, i.url+"/forgot") || strings.Contains(m.Text, "sgn_") {
			t.Errorf("the mail is %q: %s", m.Subject, m.Text)
		}
	})

	t.Run("used twice", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask("prompt", "create"))
		v.starts("twice@mail.test")
		link := i.linkTo(sink, "twice@mail.test")
		another := i.visitor(t, b)
		another.Open(link)
		another.names("New", "Person")
		v.Open(link)
		v.names("New", "Person")
		v.newPassword()
		v.arrives()
		another.newPassword()
		another.sees("h1", "no longer works")
		another.saysNothingBad("used")
		another.Open(link)
		another.sees("h1", "no longer works")
	})

	t.Run("another browser ends at the account", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask("prompt", "create"))
		v.starts("elsewhere@mail.test")
		other := i.visitor(t, browser.Start(t))
		other.Open(i.linkTo(sink, "elsewhere@mail.test"))
		other.names("New", "Person")
		other.newPassword()
		other.sees("main", "elsewhere@mail.test")
		if !strings.HasPrefix(other.At(), i.url+"/account") {
			t.Errorf("at %s", other.At())
		}
	})

	t.Run("a link that is none", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.url + "/register?code=sgn_reg_x.y")
		v.sees("h1", "no longer works")
	})

	t.Run("switched off before the link is opened", func(t *testing.T) {
		v := i.visitor(t, b)
		v.Open(i.ask("prompt", "create"))
		v.starts("late@mail.test")
		link := i.linkTo(sink, "late@mail.test")
		i.registers("REGISTRATION_MODE_UNSPECIFIED")
		defer i.registers(toAll)
		v.Open(link)
		v.WaitFor("h1")
		if v.Has("#firstName") {
			t.Error("an account can still be made")
		}
	})

	t.Run("terms that change meanwhile have to be accepted again", func(t *testing.T) {
		i.registers(toAll, "termsUri", termsOfUse)
		defer i.registers(toAll)
		v := i.visitor(t, b)
		v.Open(i.ask("prompt", "create"))
		v.starts("terms@mail.test")
		v.Open(i.linkTo(sink, "terms@mail.test"))
		v.names("New", "Person")
		v.Click("#terms")
		i.registers(toAll, "termsUri", termsOfUse+"/2")
		v.newPassword()
		v.sees("[role=alert]", "accept the terms")
		v.Click("#terms")
		v.newPassword()
		v.arrives()
		v.Open(i.url + "/account")
		v.sees("main", termsOfUse+"/2")
	})

	t.Run("a flood of one mailbox", func(t *testing.T) {
		v := i.visitor(t, b)
		for _, email := range []string{"flood@mail.test", "FLOOD@mail.test", "flood+1@mail.test", "flood+2@mail.test",
			"flood@mail.test"} {
			v.Open(i.ask("prompt", "create"))
			v.starts(email)
		}
		if m := sink.Next(t); !strings.HasPrefix(strings.ToLower(m.To), "flood") { // whichever a node looked at first
			t.Errorf("a mail to %s", m.To)
		}
		v.Open(i.ask("prompt", "create"))
		v.starts("after@mail.test") // what waited longer has been looked at when this mail is there
		i.linkTo(sink, "after@mail.test")
		sink.None(t)
	})

	t.Run("only addresses in proven domains", func(t *testing.T) {
		added := i.api("POST", "/v1/orgs/"+i.org+"/domains",
			map[string]any{"domain": "proven.test"})["domain"].(map[string]any)
		dns.name, dns.value = added["verificationName"].(string), added["verificationValue"].(string)
		i.api("POST", "/v1/orgs/"+i.org+"/domains/proven.test/_verify", map[string]any{})
		i.registers(toDomains)
		v := i.visitor(t, b)
		v.Open(i.ask("prompt", "create"))
		v.starts("not@else.test")
		v.Open(i.ask("prompt", "create"))
		v.starts("new@proven.test")
		v.Open(i.linkTo(sink, "new@proven.test"))
		v.names("New", "Person")
		v.newPassword()
		v.arrives()
		sink.None(t)
	})

	t.Run("without scripts", func(t *testing.T) {
		i.registers(toAll, "termsUri", termsOfUse)
		v := i.visitor(t, b)
		v.Do(emulation.SetScriptExecutionDisabled(true))
		v.Open(i.ask("prompt", "create"))
		v.starts("plain@mail.test")
		v.Open(i.linkTo(sink, "plain@mail.test"))
		v.names("New", "Person")
		v.Click("#terms")
		v.newPassword()
		v.arrives()
	})
}

func TestJoiningThroughAProviderAsksForTheTerms(t *testing.T) {
	u, i, b := another(t), installed(t, func(c *server.Config) { c.OutboundAllow = []string{"127.0.0.0/8"} }),
		browser.Start(t)
	i.provider(u, map[string]any{"autoRegister": true, "scopes": []string{"profile", "email"}})
	i.registers("REGISTRATION_MODE_UNSPECIFIED", "termsUri", termsOfUse)
	u.person("ana")
	v := i.visitor(t, b)
	v.Open(i.ask())
	v.through("ana")
	v.sees("h1", "Create your account")
	v.Submit("main form button.primary")
	v.sees("[role=alert]", "accept the terms")
	v.Click("#terms")
	v.Submit("main form button.primary")
	v.arrives()
	v.Open(i.url + "/account")
	v.sees("main", termsOfUse)
}
