package api_test

import (
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// Actor is somebody who can send requests.
type Actor struct {
	UserID, OrgID string
	Token         string // empty: has none
	SessionID     string // set where the token is a session's
	LoginName     string
	Password      string
	MustChange    bool
}

// person describes a user to make. The operations that make users one by one are not there yet, so this goes
// through the store, with the rules of package user.
type person struct {
	Org, Domain   string
	UserName      string // empty: a unique one
	Email         string
	EmailVerified bool
	Service       bool
	Roles         []access.Role            // in the own organization
	Elsewhere     map[string][]access.Role // in others, or access.Installation
}

// addUser makes a user with a personal access token and, for people, the shared password. It costs no hash.
func (w *World) addUser(t *testing.T, p person) *Actor {
	t.Helper()
	if p.UserName == "" {
		p.UserName = unique("user")
	}
	if p.Email == "" {
		p.Email = unique("mail") + "@mail.example"
	}
	a := &Actor{UserID: user.Kind.NewID(), OrgID: p.Org, LoginName: p.UserName + "@" + p.Domain}
	token, hash := secret.NewToken(secret.PAT)
	w.hide(token)
	w.command(t, event.Command{
		Write:  []event.Ref{user.Kind.Ref(a.UserID), session.Kind.Ref(session.IDFor(a.UserID))},
		Read:   []event.Ref{org.Kind.Ref(p.Org)},
		Claims: []event.Claim{user.NameClaim(p.Org, syntax.NameKey(p.UserName))},
		Decide: func(tx *event.Tx) error {
			o, err := org.Kind.Get(tx, p.Org)
			if err != nil {
				return err
			}
			var u *event.Object[user.User]
			if p.Service {
				u, err = user.AddService(tx, a.UserID, p.Org, p.UserName, "Robot", "")
			} else {
				u, err = user.AddHuman(tx, a.UserID, p.Org, &user.NewHuman{
					UserName:      p.UserName,
					Email:         p.Email,
					EmailVerified: p.EmailVerified,
					Profile:       user.Profile{FirstName: "Test", LastName: "Person"},
				})
			}
			if err != nil {
				return err
			}
			if !p.Service {
				a.Password = w.password
				if err := user.PutPassword(tx, u, w.hash, user.PasswordSet{}); err != nil {
					return err
				}
			}
			if len(p.Roles) > 0 {
				if err := u.Append(user.MembershipSet{Scope: p.Org, Roles: p.Roles}); err != nil {
					return err
				}
			}
			for scope, roles := range p.Elsewhere {
				if err := u.Append(user.MembershipSet{Scope: scope, Roles: roles}); err != nil {
					return err
				}
			}
			_, err = session.IssuePAT(tx, u, o.Data.Epoch,
				session.PAT{Hash: hash, Name: "test", Expires: tx.Now() + time.Hour.Microseconds()})
			return err
		},
	})
	a.Token = token
	return a
}

// giveToken gives an actor one more token; with a negative life it is over already.
func (w *World) giveToken(t *testing.T, a *Actor, kind secret.TokenKind, life time.Duration) {
	t.Helper()
	token, hash := secret.NewToken(kind)
	w.hide(token)
	w.command(t, event.Command{
		Write: []event.Ref{user.Kind.Ref(a.UserID), session.Kind.Ref(session.IDFor(a.UserID))},
		Read:  []event.Ref{org.Kind.Ref(a.OrgID)},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, a.UserID)
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, a.OrgID)
			if err != nil {
				return err
			}
			if kind == secret.PAT {
				_, err = session.IssuePAT(tx, u, o.Data.Epoch,
					session.PAT{Hash: hash, Name: "test", Expires: tx.Now() + life.Microseconds()})
				return err
			}
			tx.PutToken(event.Token{
				ID:       event.NewID("ses"),
				Hash:     hash,
				Kind:     string(kind),
				UserID:   u.ID,
				Epoch:    u.Data.SessionEpoch,
				OrgEpoch: o.Data.Epoch,
				Created:  tx.Now(),
				Expires:  tx.Now() + life.Microseconds(),
			})
			return nil
		},
	})
	a.Token = token
}

func (w *World) command(t *testing.T, c event.Command) {
	t.Helper()
	c.Origin = event.Origin{Actor: event.System}
	if err := w.server.Store().Do(event.WritesMany(t.Context()), c); err != nil {
		t.Fatal(err)
	}
}

// change records facts about an object that no operation records yet.
func change[S any](t *testing.T, w *World, kind *event.Objects[S], id string, facts ...event.Fact[S]) {
	t.Helper()
	w.command(t, event.Command{Write: []event.Ref{kind.Ref(id)}, Decide: func(tx *event.Tx) error {
		o, err := kind.Get(tx, id)
		if err != nil {
			return err
		}
		return o.Append(facts...)
	}})
}

func (w *World) changeUser(t *testing.T, id string, facts ...event.Fact[user.User]) {
	t.Helper()
	change(t, w, user.Kind, id, facts...)
}

func (w *World) changeOrg(t *testing.T, id string, facts ...event.Fact[org.Org]) {
	t.Helper()
	change(t, w, org.Kind, id, facts...)
}

func (w *World) changeIDP(t *testing.T, id string, facts ...event.Fact[idp.Provider]) {
	t.Helper()
	change(t, w, idp.Kind, id, facts...)
}
