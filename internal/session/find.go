package session

import (
	"cmp"
	"context"
	"sync"

	"github.com/signet-idm/signet/internal/errs"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/user"
)

// nobodyID is looked up in the place of a user that a name does not lead to.
const nobodyID = "usr_nobody"

// typedName is what a name counts as that is looked up in an organization.
func typedName(orgID, key string) []string { return []string{"name", orgID, key} }

// lookup is one way in which a name may lead to a user. It gives the user's id; empty where it leads to nobody.
type lookup func(ctx context.Context) (userID string, err error)

// firstOf tries all lookups, whatever the others find, and reads the user of the first that finds somebody; nil where none
// does. All are asked at once: so names that nobody has, and names that are found at the last of them, take as long as a name that is found at the
// first, and that one waits no longer than for its own.
func (s *Sessions) firstOf(ctx context.Context, steps []lookup) (*event.Object[user.User], error) {
	found, failed := make([]string, len(steps)), make([]error, len(steps))
	var others sync.WaitGroup
	look := func(i int) {
		failed[i] = errs.Guarded(func() (err error) { found[i], err = steps[i](ctx); return err })
	}
	for i := 1; i < len(steps); i++ {
		others.Go(func() { look(i) })
	}
	if len(steps) > 0 {
		look(0)
	}
	others.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	id := cmp.Or(found...)
	u, err := user.Kind.Read(ctx, s.Store, cmp.Or(id, nobodyID))
	if err != nil || id == "" {
		return nil, err
	}
	return u, nil
}

// named finds the user of a user name in an organization.
func (s *Sessions) named(orgID, nameKey string) lookup {
	return func(ctx context.Context) (string, error) { return s.Store.Holder(ctx, user.NameClaim(orgID, nameKey)) }
}

// withEmail finds the user of an organization who has a verified e-mail address: of several, whose was verified first, see user.Verification.
func (s *Sessions) withEmail(orgID, email string) lookup {
	return func(ctx context.Context) (string, error) {
		found, err := s.Store.RecordsWhere(ctx, user.Kind.Name(), orgID, user.VerifiedEmail, user.EmailDigest(email), user.FirstByEmail, 1)
		if err != nil || len(found) == 0 {
			return "", err
		}
		return found[0].ID, nil
	}
}
