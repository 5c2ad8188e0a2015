package user

import (
	"cmp"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// NewHuman is what a person is created with.
type NewHuman struct {
	UserName      string
	Profile       Profile // an empty display name is made from first and last name
	Email         string
	EmailVerified bool
	VerifiedBy    Verifier // on whose word; empty: an administrator's of the organization
	VerifierOrg   string   // that owns the provider, where it is a provider's word
	Phone         string   // empty: none
	PhoneVerified bool
}

// Violations lists what is wrong with it, each field under the given prefix.
func (n *NewHuman) Violations(prefix string) errs.Violations {
	return n.violations(prefix, "email.email", "phone.phone")
}

// violations is for who calls the addresses by these names.
func (n *NewHuman) violations(prefix, email, phone string) (wrong errs.Violations) {
	wrong.Add(prefix+"userName", syntax.Name(n.UserName))
	wrong = append(wrong, n.Profile.violations(prefix+"profile.")...)
	_, problem := syntax.Email(n.Email)
	wrong.Add(prefix+email, problem)
	if n.Phone != "" {
		_, problem := parsePhone(n.Phone)
		wrong.Add(prefix+phone, problem)
	}
	return wrong
}

// NameIsAddress says that a user name looks like an address of somebody else.
const NameIsAddress errs.ProblemReason = "NAME_IS_ADDRESS"

// ChosenName tells what is wrong with a user name that a person or an identity provider chooses. A name like an address
// would be found where an address is looked for: only the person whose confirmed address it is may have it. What
// NameKey makes an @ is one.
func ChosenName(name, email string, confirmed bool) *errs.Problem {
	key := syntax.NameKey(name)
	if strings.Contains(key, "@") && (!confirmed || key != syntax.NameKey(email)) {
		return &errs.Problem{Reason: NameIsAddress,
			Message: "must not contain @, unless it is your own confirmed e-mail address"}
	}
	return nil
}

// parsePhone is syntax.Phone for numbers that are not too long.
func parsePhone(number string) (normal string, problem *errs.Problem) {
	if problem := syntax.Text(number, syntax.MaxPhone); problem != nil {
		return "", problem
	}
	return syntax.Phone(number)
}

// HumanAdded records a new person.
type HumanAdded struct {
	EmailVerified bool          `json:"emailVerified,omitempty"`
	Verification  *Verification `json:"verification,omitempty"` // of the e-mail address; missing in the first events
	PhoneVerified bool          `json:"phoneVerified,omitempty"`
	Personal      HumanFacts    `json:"-"`
}

// HumanFacts is the personal part of HumanAdded. Keys are recorded, not recomputed: Unicode's tables change. Those of
// plain texts do not, and are left out since shortVersion.
type HumanFacts struct {
	UserName    string  `json:"userName"`
	UserNameKey string  `json:"userNameKey,omitempty"`
	Profile     Profile `json:"profile"`
	NameKey     string  `json:"nameKey,omitempty"` // of the display name; missing in the first events
	Email       string  `json:"email"`
	EmailKey    string  `json:"emailKey,omitempty"`
	Phone       string  `json:"phone,omitempty"`
	PhoneNormal string  `json:"phoneNormal,omitempty"`
}

// short leaves out what Apply puts back.
func (f HumanFacts) short() HumanFacts {
	f.UserNameKey = unlessPlain(f.UserNameKey, f.UserName)
	f.NameKey = unlessPlain(f.NameKey, f.Profile.DisplayName)
	f.EmailKey = unlessPlain(f.EmailKey, f.Email)
	f.Profile = f.Profile.short()
	return f
}

// EventType implements event.Fact.
func (HumanAdded) EventType() event.Type { return "user.human_added.v1" }

// Apply implements event.Fact.
func (e HumanAdded) Apply(u *User) {
	p := e.Personal
	p.Profile = p.Profile.full()
	*u = User{
		Standing:    Standing{State: Active},
		UserName:    p.UserName,
		UserNameKey: cmp.Or(p.UserNameKey, syntax.PlainKey(p.UserName)),
		Human: &Human{
			Profile: p.Profile,
			NameKey: cmp.Or(p.NameKey, syntax.PlainKey(p.Profile.DisplayName)),
			Email: Email{Address: p.Email, Key: cmp.Or(p.EmailKey, syntax.PlainKey(p.Email)),
				Verified: e.EmailVerified},
		},
	}
	event.Set(&u.Human.Email.Verification, e.Verification)
	if p.Phone != "" {
		u.Human.Phone = &Phone{Number: p.Phone, Normal: p.PhoneNormal, Verified: e.PhoneVerified}
	}
}

// ApplyAt implements event.EventAware.
func (e HumanAdded) ApplyAt(u *User, at *event.Event) {
	if e.Apply(u); e.Verification == nil {
		u.Human.Email.assume(VerifiedByAdministrator, at)
	}
}

// ServiceAdded records a new service user.
type ServiceAdded struct {
	Personal ServiceFacts `json:"-"`
}

// ServiceFacts is the personal part of ServiceAdded: people name services after themselves.
type ServiceFacts struct {
	UserName    string `json:"userName"`
	UserNameKey string `json:"userNameKey"`
	Name        string `json:"name"`
	NameKey     string `json:"nameKey,omitempty"`
	Description string `json:"description,omitempty"`
}

// EventType implements event.Fact.
func (ServiceAdded) EventType() event.Type { return "user.service_added.v1" }

// Apply implements event.Fact.
func (e ServiceAdded) Apply(u *User) {
	p := e.Personal
	*u = User{Standing: Standing{State: Active}, UserName: p.UserName, UserNameKey: p.UserNameKey,
		Service: &Service{Name: p.Name, NameKey: p.NameKey, Description: p.Description}}
}

// MembershipSet records which roles a user holds in a scope from now on, without those that groups give; none ends the
// membership, unless the user stays.
type MembershipSet struct {
	Scope string        `json:"scope"`
	Roles []access.Role `json:"roles,omitempty"`
	Stays bool          `json:"stays,omitempty"` // also without roles
}

// EventType implements event.Fact.
func (MembershipSet) EventType() event.Type { return "user.membership_set.v1" }

// Since implements event.Gated: a node of before would end the membership of somebody who stays without roles, and some
// do not know all roles.
func (e MembershipSet) Since() int {
	if since := access.RolesSince(e.Roles); since > 0 {
		return since
	}
	if e.Stays {
		return groupVersion
	}
	return 0
}

// Apply implements event.Fact.
func (e MembershipSet) Apply(u *User) {
	direct := u.Direct().With(e.Scope, e.Roles)
	if e.Stays && len(e.Roles) == 0 {
		direct[e.Scope] = []access.Role{}
	}
	if _, in := direct[e.Scope]; !in && len(u.Groups[e.Scope]) == 0 {
		u.forgetAcceptance(e.Scope)
	}
	u.settle(direct)
}

// ApplyAt implements event.EventAware. Who got roles in the command that added them was added by Setup Organization,
// which is for administrators of the installation: events have the same time then, and only then.
func (e MembershipSet) ApplyAt(u *User, at *event.Event) {
	e.Apply(u)
	const last = 3 // the person, a password, and this
	if assumed := (Verification{By: VerifiedByAdministrator, At: at.Time, Assumed: true}); u.Human != nil &&
		u.Human.Email.Verification == assumed && at.Sequence <= last && e.Scope == at.Org {
		u.Human.Email.Verification.By = VerifiedByInstallation
	}
}

// facts are what is recorded of it.
func (n *NewHuman) facts() HumanFacts {
	facts := HumanFacts{UserName: n.UserName, UserNameKey: syntax.NameKey(n.UserName), Profile: n.Profile,
		Email: n.Email, Phone: n.Phone}
	if facts.Profile.DisplayName == "" {
		facts.Profile.DisplayName = n.Profile.FirstName + " " + n.Profile.LastName
	}
	facts.NameKey = syntax.NameKey(facts.Profile.DisplayName)
	facts.EmailKey, _ = syntax.Email(n.Email)
	if n.Phone != "" {
		facts.PhoneNormal, _ = syntax.Phone(n.Phone)
	}
	return facts
}

func (n *NewHuman) verifier() Verifier { return cmp.Or(n.VerifiedBy, VerifiedByAdministrator) }

// AddHuman creates a person inside a command that declared the id for writing and the claim of the name. Errors:
// ErrUserNameTaken; InvalidArgument with the violations of n.
func AddHuman(tx *event.Tx, id, org string, n *NewHuman) (*event.Object[User], error) {
	if err := n.Violations("").Err(); err != nil {
		return nil, err
	}
	facts := n.facts()
	if err := nameFree(tx, org, facts.UserNameKey); err != nil {
		return nil, err
	}
	if tx.Every(shortVersion) {
		facts = facts.short()
	}
	verification := Said(tx, n.EmailVerified, n.verifier())
	if verification != nil {
		verification.Org = n.VerifierOrg
	}
	return Kind.Create(tx, id, org,
		HumanAdded{EmailVerified: n.EmailVerified, Verification: verification,
			PhoneVerified: n.PhoneVerified && n.Phone != "", Personal: facts})
}

// AddService creates a service user, likewise.
func AddService(tx *event.Tx, id, org, userName, name, description string) (*event.Object[User], error) {
	wrong := serviceViolations(name, description)
	if wrong.Add("userName", syntax.Name(userName)); wrong != nil {
		return nil, wrong.Err()
	}
	key := syntax.NameKey(userName)
	if err := nameFree(tx, org, key); err != nil {
		return nil, err
	}
	return Kind.Create(tx, id, org,
		ServiceAdded{Personal: ServiceFacts{UserName: userName, UserNameKey: key, Name: name,
			NameKey: syntax.NameKey(name), Description: description}})
}

func serviceViolations(name, description string) (wrong errs.Violations) {
	wrong.Add("name", syntax.Name(name))
	wrong.Add("description", syntax.Text(description, syntax.MaxDescription))
	return wrong
}

func nameFree(tx *event.Tx, org, key string) error {
	holder, err := tx.Holder(NameClaim(org, key))
	if err == nil && holder != "" {
		return ErrUserNameTaken
	}
	return err
}
