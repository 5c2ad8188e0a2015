package setup

import (
	"context"
	"errors"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/signin/session"
)

// FirstAdmin is what the first start hands to the operator, once.
type FirstAdmin struct {
	OrgID         string
	UserID        string
	LoginName     string
	Password      string
	ServiceUserID string
	Token         string
}

// Names of what the first start creates.
const (
	defaultOrgName   = "Default"
	adminUserName    = "admin"
	serviceUserName  = "first-service"
	firstTokenLife   = 90 * 24 * time.Hour
	adminDescription = "made by the first start: holds the token in first-admin.json"
)

// AlreadySetUp is the reason when somebody else's first start was faster.
const AlreadySetUp errs.Reason = "ALREADY_SET_UP"

// ErrAlreadySetUp: the installation exists.
var ErrAlreadySetUp = errs.New(errs.FailedPrecondition, AlreadySetUp, "the installation is already set up")

// First creates the installation, the default organization, a person and a service user who own the installation, all
// in one transaction. keep is called with what the operator must not lose before anything is written; if it
// fails, nothing is. Errors: ErrAlreadySetUp.
func (s Setup) First(ctx context.Context, keep func(FirstAdmin) error) (FirstAdmin, error) {
	plan := s.plan(defaultOrgName, "")
	plan.domains = plan.domains[:1] // nobody else can have it
	f := FirstAdmin{OrgID: plan.orgID, UserID: user.Kind.NewID(), ServiceUserID: user.Kind.NewID(),
		LoginName: adminUserName + "@" + plan.domains[0], Password: secret.NewPassword()}
	hash, err := s.Hasher.Hash(ctx, f.Password)
	if err != nil {
		return f, err
	}
	token, tokenHash := secret.NewToken(secret.PAT)
	f.Token = token
	if err := keep(f); err != nil {
		return f, err
	}
	human := user.NewHuman{
		UserName: adminUserName,
		Profile:  user.Profile{FirstName: "First", LastName: "Administrator"},
		Email:    "admin@" + plan.domains[0],
	}
	err = s.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Write: []event.Ref{installation.Ref, org.Kind.Ref(f.OrgID), user.Kind.Ref(f.UserID),
			user.Kind.Ref(f.ServiceUserID),
			session.Kind.Ref(session.IDFor(f.ServiceUserID))},
		Claims: append(plan.claims(), user.NameClaim(f.OrgID, syntax.NameKey(adminUserName)),
			user.NameClaim(f.OrgID, syntax.NameKey(serviceUserName))),
		Decide: func(tx *event.Tx) error {
			existing, err := installation.Kind.Get(tx, installation.ID)
			if err != nil {
				return err
			}
			if existing != nil {
				return ErrAlreadySetUp
			}
			_, err = org.Add(tx, f.OrgID, defaultOrgName, plan.domains)
			if errors.Is(err, org.ErrDomainTaken) {
				// PostgreSQL looks for the installation first and for names then. What came between the two is another
				// node's first start.
				return ErrAlreadySetUp
			}
			if err != nil {
				return err
			}
			admin, err := user.AddHuman(tx, f.UserID, f.OrgID, &human)
			if err != nil {
				return err
			}
			if err := user.PutPassword(tx, admin, hash, user.PasswordSet{}); err != nil {
				return err
			}
			service, err := user.AddService(tx, f.ServiceUserID, f.OrgID, serviceUserName, "First service user",
				adminDescription)
			if err != nil {
				return err
			}
			i, err := installation.Kind.Create(tx, installation.ID, f.OrgID, installation.Added{DefaultOrg: f.OrgID})
			if err != nil {
				return err
			}
			for _, u := range []*event.Object[user.User]{admin, service} {
				if err := makeOwner(i, u); err != nil {
					return err
				}
			}
			_, err = session.IssuePAT(tx, service, 0,
				session.PAT{Hash: tokenHash, Name: "first-admin.json",
					Expires: tx.Now() + firstTokenLife.Microseconds()})
			return err
		},
	})
	return f, err
}

func makeOwner(i *event.Object[installation.Installation], u *event.Object[user.User]) error {
	if err := u.Append(user.MembershipSet{Scope: access.Installation,
		Roles: []access.Role{access.IAMOwner}}); err != nil {
		return err
	}
	return i.Append(installation.OwnerAdded{UserID: u.ID})
}

// Recovered is what Recover hands to the operator.
type Recovered struct {
	UserID  string
	Token   string
	Expires time.Time
	Removed int // owners that earlier calls have made
}

const (
	recoveryTokenLife   = 24 * time.Hour
	recoveryPrefix      = "recovery-"
	recoveryDescription = "made by signet admin recover"
)

// Recover makes a new service user who owns the installation, with a token for a day. It is for an operator who has the
// data directory or the database and has lost every other way to sign in. The owners that earlier calls have made are
// removed. Errors: those of the store; FailedPrecondition before the first start.
func (s Setup) Recover(ctx context.Context) (Recovered, error) {
	inst, err := installation.Read(ctx, s.Store)
	if err != nil {
		return Recovered{}, err
	}
	if inst == nil {
		return Recovered{}, errs.New(errs.FailedPrecondition, NotSetUp,
			"there is no installation yet: create one with signet start")
	}
	orgID := inst.Data.DefaultOrg
	r := Recovered{UserID: user.Kind.NewID()}
	userName := recoveryPrefix + randomLabel()
	token, tokenHash := secret.NewToken(secret.PAT)
	err = s.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Write:  []event.Ref{installation.Ref, user.Kind.Ref(r.UserID), session.Kind.Ref(session.IDFor(r.UserID))},
		Read:   []event.Ref{org.Kind.Ref(orgID)},
		Claims: []event.Claim{user.NameClaim(orgID, syntax.NameKey(userName))},
		Decide: func(tx *event.Tx) error {
			i, err := installation.Kind.Get(tx, installation.ID)
			if err != nil {
				return err
			}
			o, err := org.Kind.Get(tx, orgID)
			if err != nil {
				return err
			}
			u, err := user.AddService(tx, r.UserID, orgID, userName, "Recovery", recoveryDescription)
			if err != nil {
				return err
			}
			if err := makeOwner(i, u); err != nil {
				return err
			}
			r.Expires = event.Time(tx.Now()).Add(recoveryTokenLife)
			_, err = session.IssuePAT(tx, u, o.Data.Epoch,
				session.PAT{Hash: tokenHash, Name: "signet admin recover", Expires: event.Micros(r.Expires)})
			return err
		},
	})
	if err != nil {
		return Recovered{}, err
	}
	r.Token = token
	r.Removed, err = s.removeEarlier(ctx, r.UserID, orgID)
	return r, err
}

// removeEarlier lets the owner that was just made remove those that were made in the same way before.
func (s Setup) removeEarlier(ctx context.Context, userID, orgID string) (removed int, err error) {
	caller := access.Caller{UserID: userID, OrgID: orgID,
		Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	permit, err := caller.In(orgID, access.UserWrite)
	if err != nil {
		return 0, err
	}
	for after := new(event.Cursor); after != nil; {
		var found []*event.Object[user.User]
		if found, after, err = user.List(ctx, s.Store, permit,
			user.Filter{UserName: recoveryPrefix, Type: user.IsService}, *after, 100); err != nil {
			return removed, err
		}
		for _, u := range found {
			if u.ID == userID || u.Data.Service == nil || u.Data.Service.Description != recoveryDescription {
				continue
			}
			if _, err := lifecycle.RemoveUser(ctx, s.Store, permit, u.ID, event.IfMatch{}); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}

// NotSetUp is the reason of operations before the first start.
const NotSetUp errs.Reason = "NOT_SET_UP"
