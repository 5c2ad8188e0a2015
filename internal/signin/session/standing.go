package session

import (
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
)

// Standings reads what decides about a credential. It remembers what a text means, never whose it is: the text itself
// is asked for anew with every request. The zero value is ready for use.
type Standings struct {
	users         jsonCache[user.Standing]
	orgs          jsonCache[org.Standing]
	installations jsonCache[installation.Standing]
	apps          jsonCache[app.Standing]
	given         jsonCache[Given]
	providers     jsonCache[idp.Standing]
}
