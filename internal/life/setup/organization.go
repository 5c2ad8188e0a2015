// Package setup creates objects that belong together in one command, all or none: an organization with its
// administrator, and on the first start the installation itself.
package setup

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Organization is what an organization is set up with.
type Organization struct {
	Name     string
	Domain   string // empty: one is made under the suffix
	Human    user.NewHuman
	Password string
	Roles    []string // empty: ORG_OWNER
}

// Violations lists what is wrong with it but for its password, in the names of the API.
func (o *Organization) Violations() (wrong errs.Violations) {
	wrong = orgViolations(o.Name, o.Domain)
	wrong = append(wrong, o.Human.Violations("human.")...)
	wrong = append(wrong, access.RoleViolations("", o.Roles)...)
	return wrong[:min(len(wrong), errs.MaxViolations)]
}

func orgViolations(name, domain string) (wrong errs.Violations) {
	wrong.Add("org.name", syntax.Name(name))
	if domain != "" {
		_, problem := syntax.Domain(domain)
		wrong.Add("org.domain", cmp.Or(syntax.Text(domain, syntax.MaxDomain), problem))
	}
	return wrong
}

// Done is what Setup answers.
type Done struct {
	Details event.Details // of the organization
	OrgID   string
	UserID  string
}

// Setup makes organizations.
type Setup struct {
	Store        event.Store
	Hasher       *secret.Hasher
	DomainSuffix string
}

// Organization creates an organization, its administrator, the membership and the domain: all or nothing. The permit
// must be for the installation. Errors: InvalidArgument with violations; org.ErrDomainTaken; those of once;
// Unavailable when too many passwords are being hashed; those of permit.Renew when the caller may no longer once the
// password is hashed.
func (s Setup) Organization(ctx context.Context, permit access.Permit, once event.Once, in Organization) (Done, error) {
	if !permit.Reaches(access.Installation) {
		return Done{}, access.ErrDenied
	}
	if wrong := in.Violations(); len(wrong) > 0 {
		return Done{}, errs.Invalid(wrong...)
	}
	everywhere, err := installation.ReadPolicy(ctx, s.Store)
	if err != nil {
		return Done{}, err
	}
	// What the organization itself asks for is not known yet.
	wrong := policy.Effective(everywhere, policy.Policy{}).Given().InitialViolations("human.password", in.Password)
	var hash []byte
	if len(wrong) == 0 {
		if hash, err = s.Hasher.Hash(ctx, in.Password); err != nil {
			return Done{}, err
		}
		if permit, err = permit.Renew(ctx); err != nil { // the queue for hashing may have been long
			return Done{}, err
		}
	}
	roles := []access.Role{access.OrgOwner}
	if len(in.Roles) > 0 {
		roles = nil
		for _, r := range in.Roles {
			roles = append(roles, access.Role(r))
		}
	}
	in.Human.VerifiedBy = user.VerifiedByInstallation
	var done Done
	plan := s.plan(in.Name, in.Domain)
	userID := user.Kind.NewID()
	err = s.Store.Do(ctx, once.Wrap(event.Command{
		Origin: permit.Origin(),
		Create: []event.Ref{org.Kind.Ref(plan.orgID), user.Kind.Ref(userID)},
		Claims: append(plan.claims(), user.NameClaim(plan.orgID, syntax.NameKey(in.Human.UserName))),
		Decide: func(tx *event.Tx) error {
			if len(wrong) > 0 { // a repetition still gets the first answer: the policy may have been another one then
				return errs.Invalid(wrong...)
			}
			o, err := org.Add(tx, plan.orgID, in.Name, plan.domains)
			if err != nil {
				return err
			}
			u, err := user.AddHuman(tx, userID, plan.orgID, &in.Human)
			if err != nil {
				return err
			}
			if err := user.PutPassword(tx, u, hash, user.PasswordSet{}); err != nil {
				return err
			}
			if err := u.Append(user.MembershipSet{Scope: plan.orgID,
				Roles: access.Memberships{}.With(plan.orgID, roles)[plan.orgID]}); err != nil {
				return err
			}
			done = Done{Details: o.Details(), OrgID: plan.orgID, UserID: userID}
			return nil
		},
	}, &done))
	return done, err
}

// plan is what a new organization will be called by.
type plan struct {
	orgID   string
	domains []string // candidates, best first
}

func (s Setup) plan(name, domain string) plan {
	p := plan{orgID: org.Kind.NewID()}
	if domain != "" {
		ascii, _ := syntax.Domain(domain)
		p.domains = []string{ascii}
		return p
	}
	label := syntax.DomainLabel(name)
	p.domains = []string{label + "." + s.DomainSuffix}
	for range 3 {
		p.domains = append(p.domains, label+"-"+randomLabel()+"."+s.DomainSuffix)
	}
	return p
}

func (p plan) claims() []event.Claim {
	var claims []event.Claim
	for _, d := range p.domains {
		claims = append(claims, org.DomainClaim(d))
	}
	return claims
}

// randomLabel tells organizations of the same name apart.
func randomLabel() string {
	var b [5]byte
	rand.Read(b[:])
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:6]
}
