// A remembered device is a browser in which the second factor was proven: a sign-in there asks for the first one only.

package session

import (
	"context"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MaxDevices is how many devices are remembered for one user. One more takes the place of the oldest.
const MaxDevices = 20

// Devices remembers devices.
type Devices struct{ *Sessions }

// Life tells how long a device of somebody in an organization is remembered; zero: it is not.
func (d Devices) Life(ctx context.Context, orgID string) (time.Duration, error) {
	rules, err := org.Settings(ctx, d.Store, orgID)
	return rules.RememberDevice(), err
}

// lifeIn asks the same inside a command that declared the organization and the installation.
func lifeIn(tx *event.Tx, orgID string) (int64, error) {
	o, err := org.Kind.Get(tx, orgID)
	if err != nil || o == nil {
		return 0, err
	}
	var everywhere policy.Policy
	i, err := installation.Kind.Get(tx, installation.ID)
	if err != nil {
		return 0, err
	}
	if i != nil {
		everywhere = i.Data.Policy
	}
	return policy.Effective(everywhere, o.Data.Policy).RememberDevice().Microseconds(), nil
}

// Remember remembers the device of a caller who has just proven a second factor in a session, and gives the tokens for
// its cookie: the new one, and of those there the ones of others. There are none where the policy does not let it, or
// the proof is not recent. Errors: PermissionDenied without a session; access.ErrUnauthenticated when the session has
// ended meanwhile.
func (d Devices) Remember(ctx context.Context, caller *access.Caller, there []string,
	from From) (tokens []string, err error) {
	before, err := d.Store.TokensOf(ctx, caller.UserID, string(secret.Device), "", MaxDevices+1)
	if err != nil {
		return nil, err
	}
	drop, others, err := d.ids(ctx, caller.UserID, there)
	if err != nil {
		return nil, err
	}
	for _, t := range before[:max(0, len(before)+1-MaxDevices)] { // ids are in the order of time
		if !slices.Contains(drop, t.ID) {
			drop = append(drop, t.ID)
		}
	}
	made, hash := secret.NewToken(secret.Device)
	id := event.NewID("dev")
	from.Rotate = false
	_, err = d.Step(ctx, caller, from, false, event.Command{Tokens: drop}, func(in *InSession) error {
		tokens = nil
		u, tx := in.User(), in.Tx()
		life, err := lifeIn(tx, u.Org)
		if err != nil || life == 0 || !in.MayBeRemembered() {
			return err
		}
		o, err := org.Kind.Get(tx, u.Org)
		if err != nil {
			return err
		}
		for _, old := range drop {
			tx.DropToken(old)
		}
		tokens = append([]string{made}, others...)
		tx.PutToken(event.Token{
			ID:       id,
			Hash:     hash,
			Kind:     string(secret.Device),
			Name:     from.Name(),
			UserID:   u.ID,
			Epoch:    u.Data.SessionEpoch,
			OrgEpoch: o.Data.Epoch,
			Created:  tx.Now(),
			Expires:  tx.Now() + life,
			Data:     newDevice(&u.Data, from.UserAgent).Text(),
		})
		return in.Remembers(id, tx.Now()+life, from.Source())
	})
	if err != nil {
		return nil, err
	}
	return tokens, nil
}

// ids finds which of some tokens of a browser are a user's, and which are those of others. What is neither is left out.
func (d Devices) ids(ctx context.Context, userID string, tokens []string) (ids, others []string, err error) {
	for _, token := range tokens {
		kind, hash, ok := secret.ParseToken(token)
		if !ok || kind != secret.Device {
			continue
		}
		read, err := d.Store.TokenContext(ctx, hash)
		switch {
		case err != nil:
			return nil, nil, err
		case read == nil || read.Token.Kind != string(secret.Device):
		case read.Token.UserID != userID:
			others = append(others, token)
		case !slices.Contains(ids, read.Token.ID):
			ids = append(ids, read.Token.ID)
		}
	}
	return ids, others, nil
}

// Recognize lets a caller's new session act, if one of the tokens of the browser says that it is remembered for this
// person. Whether it did is ok. Errors: PermissionDenied without a session; access.ErrUnauthenticated when the session
// has ended meanwhile.
func (d Devices) Recognize(ctx context.Context, caller *access.Caller, tokens []string,
	from From) (out Stepped, ok bool, err error) {
	known, _, err := d.ids(ctx, caller.UserID, tokens)
	if err != nil || len(known) == 0 {
		return Stepped{}, false, err
	}
	out, err = d.Step(ctx, caller, from, false, event.Command{Tokens: known}, func(in *InSession) error {
		ok = false
		if !in.Waits() {
			return nil
		}
		for _, id := range known {
			counts, err := d.counts(in.Tx(), in.User(), id, from)
			if err != nil {
				return err
			}
			if counts {
				ok = true
				return in.Recognize(id, from.Source())
			}
		}
		return nil
	})
	if err != nil {
		return Stepped{}, false, err
	}
	return out, ok, nil
}

// counts tells whether a device is remembered for a user who may sign in now, which the session has been judged by.
func (d Devices) counts(tx *event.Tx, u *event.Object[user.User], id string, from From) (bool, error) {
	t, err := tx.Token(id)
	if err != nil || t == nil {
		return false, err
	}
	o, err := org.Kind.Get(tx, u.Org)
	if err != nil || o == nil {
		return false, err
	}
	life, err := lifeIn(tx, u.Org)
	if err != nil {
		return false, err
	}
	was := deviceOf(t)
	return t.Kind == string(secret.Device) && t.UserID == u.ID && t.Epoch == u.Data.SessionEpoch &&
		t.OrgEpoch == o.Data.Epoch &&
		tx.Now() < min(t.Expires, t.Created+life) && was.Holds(&u.Data) &&
		was.Browser == newDevice(&u.Data, from.UserAgent).Browser, nil
}
