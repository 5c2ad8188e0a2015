package server

import (
	"crypto/tls"

	"github.com/signet-idm/signet/internal/life/mail"
)

// Settings are the settings that a server would run with. They can be examined without a server.
type Settings struct {
	Config                       // with defaults
	Certificate *tls.Certificate // nil: it serves cleartext
	Mail        *mail.SMTP       // nil: no mail
}

// Settle checks a Config as a start does, and opens nothing.
func (c Config) Settle() (*Settings, error) {
	s, err := c.settle()
	if err != nil {
		return nil, err
	}
	return &Settings{Config: s.Config, Certificate: s.certificate, Mail: s.smtp}, nil
}
