package session

import (
	"github.com/signet-idm/signet/internal/app"
	"github.com/signet-idm/signet/internal/idp"
	"github.com/signet-idm/signet/internal/installation"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/session/known"
	"github.com/signet-idm/signet/internal/user"
)

// Standings reads what decides about a credential. It remembers what a text means, never whose it is: the text itself
// is asked for anew with every request. The zero value is ready for use.
type Standings struct {
	users         known.Texts[user.Standing]
	orgs          known.Texts[org.Standing]
	installations known.Texts[installation.Standing]
	apps          known.Texts[app.Standing]
	given         known.Texts[Given]
	providers     known.Texts[idp.Standing]
}
