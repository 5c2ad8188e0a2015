package federated

import (
	"context"
	"slices"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

const (
	maxHolders = 20  // people of whom it is remembered that they came in one session of a provider
	endAtOnce  = 100 // sessions that one command ends
)

// holder is somebody who came by a link in a session of a provider.
type holder struct {
	User string `json:"user"`
	Link string `json:"link"`
}

// holders are rows with the users who came in a session of a provider.
var holders = event.Flow[[]holder]{Prefix: "idp_session"}

// holdersID is the identifier of the row of a session.
func holdersID(provider, issuer, sid string) string {
	return provider + "/" + secret.Digest(issuer+"\x00"+sid)
}

// sessionRows are what a command has to declare that calls remember.
func sessionRows(who idp.Identity) []event.RowKey {
	if who.Session == "" {
		return nil
	}
	return []event.RowKey{holders.Key(holdersID(who.Provider, who.Issuer, who.Session))}
}

// remember notes who came in a session of a provider, until a time: the provider may end that session without a word of
// whose it is.
func remember(tx *event.Tx, who idp.Identity, userID, linkID string, until int64) error {
	if who.Session == "" {
		return nil
	}
	id := holdersID(who.Provider, who.Issuer, who.Session)
	row, err := tx.Row(holders.Key(id))
	if err != nil {
		return err
	}
	known, err := holders.Get(tx, id)
	if err != nil {
		return err
	}
	me := holder{userID, linkID}
	var all []holder
	if known != nil {
		all = slices.DeleteFunc(*known, func(h holder) bool { return h == me })
		until = max(until, row.Expires)
	}
	all = append(all, me)
	all = all[max(0, len(all)-maxHolders):]
	holders.PutUntil(tx, id, &all, until)
	return nil
}

// SignedOut is what a provider says has ended there, see upstream.SignedOut. Its word has been checked.
type SignedOut struct {
	Provider, Issuer string
	Subject          string // empty: every user who signed in with the session
	Session          string // sid; empty: all sessions of the subject
	RequestID        string
}

// EndThrough ends the sessions of the users who have signed out at the provider that they signed in through, and what
// applications were given in these sessions. It ends no session of another user, and none that the same user opened in
// another way. Errors: those of event.Store.
func (s Sessions) EndThrough(ctx context.Context, out SignedOut) error {
	people, err := s.signedOut(ctx, out)
	if err != nil {
		return err
	}
	for _, h := range people {
		if err := s.endOf(ctx, out, h); err != nil {
			return err
		}
	}
	return nil
}

// signedOut finds whom it is about.
func (s Sessions) signedOut(ctx context.Context, out SignedOut) ([]holder, error) {
	if out.Subject == "" {
		known, err := holders.Read(ctx, s.Store, holdersID(out.Provider, out.Issuer, out.Session))
		if err != nil || known == nil {
			return nil, err
		}
		return *known, nil
	}
	id, err := s.Store.Holder(ctx, user.LinkClaim(out.Provider, out.Issuer, out.Subject))
	if err != nil || id == "" {
		return nil, err
	}
	u, err := user.Kind.Read(ctx, s.Store, id)
	if err != nil || u == nil {
		return nil, err
	}
	l, there := u.Data.Human.LinkTo(out.Provider, out.Issuer, out.Subject)
	if !there {
		return nil, nil
	}
	return []holder{{u.ID, l.ID}}, nil
}

// endOf ends the sessions of one user that came by a link.
func (s Sessions) endOf(ctx context.Context, out SignedOut, h holder) error {
	after := ""
	for {
		found, err := s.Store.TokensOf(ctx, h.User, string(secret.Session), after, endAtOnce)
		if err != nil || len(found) == 0 {
			return err
		}
		after = found[len(found)-1].ID
		var ids []string
		for _, t := range found {
			if h.cameIn(&t, out) {
				ids = append(ids, t.ID)
			}
		}
		if err := s.end(ctx, out, h, ids); err != nil || len(found) < endAtOnce {
			return err
		}
	}
}

// cameIn tells whether a session is one that the provider names.
func (h holder) cameIn(t *event.Token, out SignedOut) bool {
	if t == nil || t.UserID != h.User || t.Kind != string(secret.Session) || t.Provider != out.Provider {
		return false
	}
	proof, err := session.ProofOf(t)
	if err != nil || proof.Upstream.Of() != out.Provider || proof.Upstream.Link != h.Link {
		return false
	}
	return out.Session == "" || proof.Upstream.Session == SessionDigest(out.Session)
}

func (s Sessions) end(ctx context.Context, out SignedOut, h holder, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System, RequestID: out.RequestID},
		Write:  []event.Ref{session.Companion(h.User)},
		Read:   []event.Ref{user.Kind.Ref(h.User)},
		Tokens: ids,
		Decide: func(tx *event.Tx) error {
			for _, id := range ids {
				t, err := tx.Token(id)
				if err != nil {
					return err
				}
				if !h.cameIn(t, out) || t.Expires <= tx.Now() {
					continue
				}
				tx.DropToken(id)
				if err := session.RecordEnd(tx, h.User, session.Ended{SessionID: id}); err != nil {
					return err
				}
			}
			return nil
		},
	})
}
