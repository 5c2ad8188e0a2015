package session

import (
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/signin/session/known"
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
