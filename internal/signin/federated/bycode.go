package federated

import (
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// ByCode says that somebody comes by the sign-in page of an application, with a code that was sent there through the
// browser. Nil: by our own pages.
type ByCode struct {
	App, Org string
	Code     event.RowKey // that the code led to: it is used up
	Attempt  event.RowKey // remembers that the attempt was used, until Until
	Until    int64
}

// declare adds what redeem needs to a command.
func (c *ByCode) declare(command *event.Command) {
	if c == nil {
		return
	}
	command.Read = append(command.Read, app.Kind.Ref(c.App))
	command.Rows = append(command.Rows, c.Code, c.Attempt)
}

// redeem uses the code up for a user. The application has what its owner gave it, so it counts only for users of its
// own organization whom everybody who answers for its secret, its method and its redirect URIs could be anyway. Errors:
// session.ErrSignInFailed.
func (c *ByCode) redeem(tx *event.Tx, u *event.Object[user.User]) error {
	if c == nil {
		return nil
	}
	a, err := app.Kind.Get(tx, c.App)
	if err != nil {
		return err
	}
	code, err := tx.Row(c.Code)
	if err != nil {
		return err
	}
	used, err := tx.Row(c.Attempt)
	if err != nil {
		return err
	}
	if a == nil || !a.Data.SignsInItself() || a.Org != c.Org || u.Org != a.Org || code == nil || used != nil ||
		!a.Data.Changer.All(func(roles access.Memberships) bool { return session.CouldLink(roles, u) }) {
		return session.ErrSignInFailed
	}
	tx.DropRow(c.Code)
	tx.PutRow(event.Row{RowKey: c.Attempt, Value: []byte{1}, Expires: c.Until})
	return nil
}
