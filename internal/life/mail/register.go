package mail

import (
	"context"
	"net/url"

	"github.com/signet-idm/signet/internal/life/registration"
)

// Mails to people who register. They are sent by package registration, not about events.
const (
	Register   Kind = "register"
	Registered Kind = "registered" // instead of Register, to somebody who has an account
)

// RegisterPath is the page that the link of Register leads to.
const RegisterPath = "/register"

// Paths of pages that mails name besides.
const (
	signInPath = "/login"
	forgotPath = "/forgot"
)

// Register implements registration.Mailer.
func (m *Mailer) Register(ctx context.Context, to registration.Receiver, token string) error {
	return m.toStranger(ctx, Register, to,
		content{Link: m.ExternalURL + RegisterPath + "?" + url.Values{"code": {token}}.Encode()})
}

// Registered implements registration.Mailer.
func (m *Mailer) Registered(ctx context.Context, to registration.Receiver) error {
	return m.toStranger(ctx, Registered, to,
		content{Link: m.ExternalURL + signInPath, Forgot: m.ExternalURL + forgotPath})
}

// toStranger writes to an address that somebody typed. Nothing that they typed besides is in it.
func (m *Mailer) toStranger(ctx context.Context, kind Kind, to registration.Receiver, c content) error {
	external, err := url.Parse(m.ExternalURL)
	if err != nil {
		return err
	}
	c.Site, c.Organization = external.Host, greetable(to.Organization)
	out, err := write(kind, to.Language, c)
	if err != nil {
		return err
	}
	out.To = to.Address
	return m.Sender.Send(ctx, out)
}

// Where is the installation, with the organization where that can be said.
func (c content) Where() string {
	if c.Organization == "" {
		return c.Site
	}
	return c.Site + " (" + c.Organization + ")"
}
