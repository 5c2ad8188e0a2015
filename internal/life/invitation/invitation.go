package invitation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/limit/mailcount"
)

// How long a link counts, within bounds.
const (
	DefaultLife = 7 * 24 * time.Hour
	MinLife     = time.Hour
	MaxLife     = 30 * 24 * time.Hour
)

// MaxGroups is how many groups an invitation can name, and MaxProjects the roles of how many projects.
const (
	MaxGroups   = 20
	MaxProjects = 20
)

// Reasons of this package.
const (
	NotFound        errs.Reason = "INVITATION_NOT_FOUND"
	AlreadyInvited  errs.Reason = "ALREADY_INVITED"
	TooMany         errs.Reason = "TOO_MANY_INVITATIONS"
	NotPending      errs.Reason = "INVITATION_NOT_PENDING"
	LinkUnknown     errs.Reason = "INVITATION_LINK_UNKNOWN"
	LinkReplaced    errs.Reason = "INVITATION_LINK_REPLACED"
	LinkUsed        errs.Reason = "INVITATION_USED"
	LinkWithdrawn   errs.Reason = "INVITATION_WITHDRAWN"
	LinkExpired     errs.Reason = "INVITATION_EXPIRED"
	OtherAddress    errs.Reason = "INVITATION_FOR_ANOTHER_ADDRESS"
	InviterMayNot   errs.Reason = "INVITER_MAY_NOT"
	TooManyPassed   errs.Reason = "TOO_MANY_INVITATIONS_SENT"
	GroupFull       errs.Reason = "INVITATION_GROUP_FULL"
	OrgNotAvailable errs.Reason = "INVITATION_ORGANIZATION_NOT_ACTIVE"
	RoleRemoved     errs.Reason = "INVITATION_ROLE_REMOVED"
)

// Errors that the rules of invitations refuse with.
var (
	ErrNotFound = errs.New(errs.NotFound, NotFound,
		"there is no invitation with this identifier in that organization")
	ErrAlreadyInvited = errs.New(errs.AlreadyExists, AlreadyInvited,
		"an invitation for this address is pending: send it again, or withdraw it first")
	ErrTooMany = errs.New(errs.FailedPrecondition, TooMany,
		"the organization has 1000 pending invitations: withdraw some, or wait until they are accepted or expire")
	ErrNotPending = errs.New(errs.FailedPrecondition, NotPending,
		"this invitation was accepted or withdrawn, or has expired: create a new one")

	ErrLinkUnknown = errs.New(errs.NotFound, LinkUnknown,
		"this link is not that of an invitation: open the whole link from the mail, or ask for a new invitation")
	ErrLinkReplaced = errs.New(errs.FailedPrecondition, LinkReplaced,
		"the invitation was sent again: use the link in the latest mail")
	ErrLinkUsed = errs.New(errs.FailedPrecondition, LinkUsed,
		"this invitation was accepted already: sign in with the account that accepted it")
	ErrLinkWithdrawn = errs.New(errs.FailedPrecondition, LinkWithdrawn,
		"this invitation was withdrawn: ask the organization for a new one")
	ErrLinkExpired = errs.New(errs.FailedPrecondition, LinkExpired,
		"this invitation has expired: ask the organization for a new one")
	ErrOtherAddress = errs.New(errs.PermissionDenied, OtherAddress,
		"this invitation is for another e-mail address: sign in with the account that has the invited address as a verified one")
	ErrInviterMayNot = errs.New(errs.FailedPrecondition, InviterMayNot,
		"whoever sent this invitation may no longer give what it promises: ask the organization for a new one")
	ErrGroupFull = errs.New(errs.FailedPrecondition, GroupFull,
		"a group of this invitation has no room: ask the organization to send it again without that group")
	ErrOrgAway = errs.New(errs.FailedPrecondition, OrgNotAvailable,
		"the organization of this invitation is not active: ask whoever invited you")
)

// errRoleGone refuses to send an invitation again that promises a custom role which was removed.
var errRoleGone = errs.New(errs.FailedPrecondition, RoleRemoved,
	"a custom role of this invitation was removed: withdraw it, and create a new one")

// Invitations makes, sends and takes back invitations.
type Invitations struct {
	Store       event.Store
	Master      secret.MasterKey
	DefaultOrg  string
	ExternalURL string // https://id.example.org
	Mail        bool   // this installation sends mail; if not, links are shown
}

// Path of the page that links lead to.
const Path = "/login/invitation"

// ParamToken is the parameter of the link that holds the token.
const ParamToken = "token"

// Address is the address of a link.
func Address(externalURL, token string) string {
	return externalURL + Path + "?" + url.Values{ParamToken: {token}}.Encode()
}

// New is an invitation to make.
type New struct {
	Email    string
	Roles    []string
	Groups   []string
	Language string        // of the mail, and of the person; empty: none
	Life     time.Duration // zero: DefaultLife
	App      string        // that the person is to use; empty: none
	Target   string        // a page of it
	AppRoles []AppRoles    // of each project once
}

// AppRoles are the roles of one project.
type AppRoles struct {
	Project string
	Keys    []string
}

// Violations lists what is wrong with it, in the names of the API.
func (n *New) Violations() (wrong errs.Violations) {
	_, problem := syntax.Email(n.Email)
	wrong.Add("email", cmp.Or(syntax.Text(n.Email, syntax.MaxName), problem))
	wrong.Add("language", syntax.Text(n.Language, syntax.MaxLanguage))
	wrong = append(wrong, access.GivenViolations("", n.Roles)...)
	if len(n.Groups) > MaxGroups {
		wrong.Add("groupIds", syntax.TooMany(MaxGroups, "groups"))
	}
	wrong.Add("lifetimeSeconds", wrongLife(n.Life))
	wrong.Add("appId", syntax.Text(n.App, syntax.MaxName))
	wrong.Add("targetLinkUri", syntax.Text(n.Target, app.MaxURI))
	return append(wrong, appRolesViolations(n.AppRoles)...)
}

func appRolesViolations(all []AppRoles) (wrong errs.Violations) {
	if len(all) > MaxProjects {
		wrong.Add("appRoles", syntax.TooMany(MaxProjects, "projects"))
		return wrong
	}
	for i, r := range all {
		field := fmt.Sprintf("appRoles[%d].", i)
		if slices.ContainsFunc(all[:i], func(o AppRoles) bool { return o.Project == r.Project }) {
			wrong.Add(field+"projectId", errs.Plain("is there twice: name each project once"))
		}
		if len(r.Keys) == 0 {
			wrong.Add(field+"roleKeys", errs.Plain("must not be empty"))
		}
		for _, w := range project.RoleKeyViolations(r.Keys) {
			w.Field = field + w.Field
			wrong = append(wrong, w)
		}
	}
	return wrong
}

func wrongLife(life time.Duration) *errs.Problem {
	if life != 0 && (life < MinLife || life > MaxLife) {
		return errs.Plain("must be between 3600 (one hour) and 2592000 (30 days)")
	}
	return nil
}

// Made is a new link of an invitation.
type Made struct {
	ID      string
	Details event.Details
	Expires time.Time
	Link    string // where it is shown: this once; empty where it goes by mail
}

// giver tells what somebody may give.
type giver struct {
	holds  func(access.Permission) bool // in the organization
	covers func(access.Memberships) bool
}

func giverOf(permit access.Permit) giver {
	return giver{
		holds:  func(p access.Permission) bool { return permit.Holds(p, permit.Org()) },
		covers: func(m access.Memberships) bool { return permit.Covers(m) == nil },
	}
}

// mayGive refuses somebody who may not give the roles of this API. Errors: access.ErrDenied; member.ErrGrantsMore.
func (g giver) mayGive(org string, roles []access.Role) error {
	switch {
	case len(roles) == 0:
		return nil
	case !g.holds(access.MemberWrite):
		return access.ErrDenied
	case !g.covers(access.Memberships{org: roles}):
		return member.ErrGrantsMore
	}
	return nil
}

// mayAddTo refuses somebody who may not put people into a group. Errors: access.ErrDenied; member.ErrGrantsMore.
func (g giver) mayAddTo(in *event.Object[group.Group]) error {
	if !g.holds(access.GroupWrite) || in.Data.HasAppRoles() && !g.holds(access.AppRoleWrite) {
		return access.ErrDenied
	}
	return g.mayGive(in.Org, in.Data.Roles)
}

// Create invites somebody into the permit's organization. Errors: InvalidArgument with the violations of n, and on
// groupIds; access.ErrDenied and member.ErrGrantsMore where the caller may not give what it promises; org.ErrNotFound;
// ErrAlreadyInvited; ErrTooMany; ResourceExhausted where the organization has sent too many today, or there were too
// many mails to the address.
func (s Invitations) Create(ctx context.Context, permit access.Permit, n New) (Made, error) {
	if err := n.Violations().Err(); err != nil {
		return Made{}, err
	}
	// what custom roles bring is known in the command only
	roles := unique(n.Roles, func(r string) access.Role { return access.Role(r) })
	groups := unique(n.Groups, func(g string) string { return g })
	if err := giverOf(permit).mayGive(permit.Org(), roles); err != nil {
		return Made{}, err
	}
	if len(groups) > 0 && !permit.Holds(access.GroupWrite, permit.Org()) ||
		len(n.AppRoles) > 0 && !permit.Holds(access.AppRoleWrite, permit.Org()) {
		return Made{}, access.ErrDenied
	}
	var granted string
	if n.App != "" {
		a, err := app.Kind.Read(ctx, s.Store, n.App)
		if err != nil {
			return Made{}, err
		}
		if granted, err = s.granted(ctx, a, permit.Org()); err != nil {
			return Made{}, err
		}
	}
	d := s.draft(permit, permit.Org(), n)
	command := d.Needs().With(event.Command{
		Origin: permit.Origin(),
		Read:   append(appRefs(n.App), org.Kind.Ref(d.org)),
		Decide: func(tx *event.Tx) error {
			if _, err := org.In(tx, d.org); err != nil {
				return err
			}
			if err := mayName(tx, d.org, granted, n); err != nil {
				return err
			}
			var err error
			if d.added.Roles, err = role.Resolve(tx, d.org, n.Roles); err != nil {
				return err
			}
			if err := giverOf(permit).mayGive(d.org, d.added.Roles); err != nil {
				return err
			}
			if err := mayAddToAll(tx, permit, d.groups); err != nil {
				return err
			}
			if d.added.AppRoles, err = promises(tx, d.org, n.AppRoles); err != nil {
				return err
			}
			return d.Make(tx)
		},
	})
	if granted != "" {
		command = project.PromiseNeeds(d.org, granted).With(command)
	}
	for _, r := range n.AppRoles {
		command = project.PromiseNeeds(d.org, r.Project).With(command)
	}
	if err := s.counting(ctx, d.org, d.next, func() error { return event.Do(ctx, s.Store, command) }); err != nil {
		return Made{}, err
	}
	return d.Made(), nil
}

// Draft is an invitation that a command is about to make.
type Draft struct {
	ID string

	org    string
	claim  event.Claim // of the address
	groups []string
	next   *sending
	added  Added
	made   Made
}

func (s Invitations) draft(permit access.Permit, owner string, n New) *Draft {
	key, _ := syntax.Email(n.Email)
	life := n.Life
	if life == 0 {
		life = DefaultLife
	}
	d := &Draft{
		ID:     Kind.NewID(),
		org:    owner,
		claim:  EmailClaim(owner, key),
		groups: unique(n.Groups, func(g string) string { return g }),
		next:   s.sending(permit, owner, key, life),
	}
	d.added = Added{Roles: unique(n.Roles, func(r string) access.Role { return access.Role(r) }), Groups: d.groups,
		Language: n.Language, Inviter: permit.Origin().Actor, App: n.App,
		Personal: Invited{Email: n.Email, EmailKey: key, Target: n.Target}}
	return d
}

// Founding drafts the invitation of the first owner of an organization that the same command creates. The caller has
// judged n by Violations; only its address, language and life count. The permit is for setting up organizations: who has
// it need not hold what the owner will.
func (s Invitations) Founding(permit access.Permit, orgID string, n New) *Draft {
	n = New{Email: n.Email, Roles: []string{string(access.OrgOwner)}, Language: n.Language, Life: n.Life}
	d := s.draft(permit, orgID, n)
	d.added.Founds = true
	return d
}

// Needs is what Make reads and writes.
func (d *Draft) Needs() event.Command {
	return event.Command{
		Create: []event.Ref{Kind.Ref(d.ID)},
		Read:   groupRefs(d.groups),
		Claims: []event.Claim{d.claim},
		Rows:   d.next.rows(),
	}
}

// Make makes it, inside a command that declared Needs. Errors: ErrAlreadyInvited; ResourceExhausted where the
// organization has sent too many today, or there were too many mails to the address.
func (d *Draft) Make(tx *event.Tx) error {
	holder, err := tx.Holder(d.claim)
	if err != nil {
		return err
	}
	if holder != "" {
		return ErrAlreadyInvited
	}
	if err := d.next.count(tx, 1); err != nil {
		return err
	}
	i, err := Kind.Create(tx, d.ID, d.org, d.added)
	if err != nil {
		return err
	}
	if err := d.next.send(tx, i); err != nil {
		return err
	}
	d.made = Made{ID: d.ID, Details: i.Details(), Expires: event.Time(d.next.expires), Link: d.next.link}
	return nil
}

// Made is what Make has made.
func (d *Draft) Made() Made { return d.made }

// unique gives the values, each once and sorted; nil for none.
func unique[T ~string](names []string, of func(string) T) (out []T) {
	for _, name := range names {
		out = append(out, of(name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func groupRefs(ids []string) (refs []event.Ref) {
	for _, id := range ids {
		refs = append(refs, group.Kind.Ref(id))
	}
	return refs
}

func appRefs(id string) (refs []event.Ref) {
	if id != "" {
		refs = append(refs, app.Kind.Ref(id))
	}
	return refs
}

// granted is the project of an application of another organization that an organization was granted; empty: none.
func (s Invitations) granted(ctx context.Context, a *event.Object[app.App], orgID string) (string, error) {
	if a == nil || a.Org == orgID || a.Data.RoleSettings.Project == "" {
		return "", nil
	}
	has, err := project.IsGranted(ctx, s.Store, orgID, a.Data.RoleSettings.Project)
	if err != nil || !has {
		return "", err
	}
	return a.Data.RoleSettings.Project, nil
}

// mayName refuses an application that people of the organization do not sign in to, without a word about whether there
// is one, and a page that is none of its own. granted is the project that lets them, if one does. Errors:
// InvalidArgument on appId and targetLinkUri.
func mayName(tx *event.Tx, orgID, granted string, n New) error {
	if n.App == "" {
		if n.Target != "" {
			return errs.Wrong("targetLinkUri", errs.Plain("must be left out without appId"))
		}
		return nil
	}
	a, err := app.Kind.Get(tx, n.App)
	if err != nil {
		return err
	}
	if granted != "" { // as it is now
		if a == nil || a.Data.RoleSettings.Project != granted {
			granted = ""
		} else if _, err := project.Promise(tx, orgID, granted, nil); errors.Is(err, project.ErrNotFound) {
			granted = ""
		} else if err != nil {
			return err
		}
	}
	if !app.Serves(a, orgID, granted != "") {
		return errs.Wrong("appId", errs.Plain("is not an application that people of this organization sign in to"))
	}
	if n.Target == "" {
		return nil
	}
	return errs.Wrong("targetLinkUri", a.Data.TargetProblem(n.Target))
}

// promises are the roles in applications that an invitation is to give. Errors: InvalidArgument on appRoles.
func promises(tx *event.Tx, orgID string, all []AppRoles) (promised []user.AppRoles, err error) {
	var wrong errs.Violations
	for i, r := range all {
		p, err := project.Promise(tx, orgID, r.Project, r.Keys)
		switch {
		case errors.Is(err, project.ErrNotFound):
			wrong.Add(fmt.Sprintf("appRoles[%d].projectId", i),
				errs.Plain("is not a project that this organization has or was granted"))
		case errors.Is(err, project.ErrRoleNotFound):
			wrong.Add(fmt.Sprintf("appRoles[%d].roleKeys", i),
				errs.Plain("names a role that the project does not declare, or did not grant to this organization"))
		case err != nil:
			return nil, err
		}
		promised = append(promised, p)
	}
	return promised, wrong.Err()
}

// mayAddToAll refuses groups that are not there, and those that the caller may not put people into.
func mayAddToAll(tx *event.Tx, permit access.Permit, ids []string) error {
	var wrong errs.Violations
	for i, id := range ids {
		g, err := group.Kind.Get(tx, id)
		if err != nil {
			return err
		}
		if g == nil || g.Data.State != group.Active || !permit.Reaches(g.Org) {
			wrong.Add(fmt.Sprintf("groupIds[%d]", i), errs.Plain("is not a group of this organization"))
			continue
		}
		if err := giverOf(permit).mayAddTo(g); err != nil {
			return err
		}
	}
	return wrong.Err()
}

// Within is an invitation that the permit reaches. Errors: ErrNotFound.
func Within(permit access.Permit, id string) event.Target[Invitation] {
	return event.Target[Invitation]{
		Kind:   Kind,
		ID:     id,
		Origin: permit.Origin(),
		Reach: func(o *event.Object[Invitation]) error {
			if o == nil || o.Data.State == Removed || !permit.Reaches(o.Org) {
				return ErrNotFound
			}
			return nil
		},
	}
}

// Get reads an invitation of the permit's organization. Errors: ErrNotFound.
func Get(ctx context.Context, r event.Reader, permit access.Permit, id string) (*event.Object[Invitation], error) {
	return Within(permit, id).Read(ctx, r)
}

// List reads a page of the invitations of the permit's organization, the oldest first. An empty state: those in any.
func List(ctx context.Context, r event.Reader, permit access.Permit, state State, after event.Cursor,
	limit int) ([]*event.Object[Invitation], *event.Cursor, error) {
	if !permit.Reaches(permit.Org()) {
		return nil, nil, org.ErrNotFound
	}
	return Kind.List(ctx, r, event.Query{Org: permit.Org(), Where: event.Where(event.State, string(state)),
		After: after, Limit: limit})
}

// StateAt is the state at a moment: nobody has to sweep first.
func (i *Invitation) StateAt(now time.Time) State {
	if i.State == Pending && event.Micros(now) >= i.Expires {
		return Expired
	}
	return i.State
}

// Open is what to count for the invitations of an organization that wait for an answer. Over is to be taken from it.
func Open() event.Counted {
	return event.Counted{Kind: Kind.Name(), Column: event.State, Value: string(Pending)}
}

// Over counts the invitations of an organization that have expired and are pending until somebody sweeps.
func Over(ctx context.Context, r event.Reader, org string, now time.Time) (n int64, err error) {
	err = due(ctx, r, now, func(_ event.RowKey, id string) error {
		i, err := Kind.Read(ctx, r, id)
		if i != nil && i.Org == org && i.Data.State == Pending && i.Data.StateAt(now) == Expired {
			n++
		}
		return err
	})
	return n, err
}

// Resend makes a new link, which ends the one before, and counts as long as that one unless life says otherwise. The
// caller answers for the invitation from then on. Support only has it mailed once more: who answered for it still does.
// Errors: as for Create; ErrNotFound; ErrNotPending; user.ErrDeliveryNotConfigured; Aborted when match does not hold.
func (s Invitations) Resend(ctx context.Context, permit access.Permit, id string, match event.IfMatch,
	life time.Duration) (Made, error) {
	problem := wrongLife(life)
	if permit.Supports() && life != 0 {
		problem = errs.Plain("must be left out by support")
	}
	if err := errs.Wrong("lifetimeSeconds", problem); err != nil {
		return Made{}, err
	}
	known, err := Get(ctx, s.Store, permit, id)
	if err != nil {
		return Made{}, err
	}
	next := s.sending(permit, permit.Org(), known.Data.EmailKey, life)
	needs := event.Command{Read: groupRefs(known.Data.Groups), Rows: next.rows()}
	var details event.Details
	err = s.counting(ctx, permit.Org(), next, func() error {
		details, err = Within(permit, id).Needs(needs).Change(ctx, s.Store, match,
			func(tx *event.Tx, i *event.Object[Invitation]) error {
				if i.Data.State != Pending || tx.Now() >= i.Data.Expires {
					return ErrNotPending
				}
				if err := s.mayResend(tx, permit, i); err != nil {
					return err
				}
				if err := next.count(tx, 0); err != nil {
					return err
				}
				return next.send(tx, i)
			})
		return err
	})
	if err != nil {
		return Made{}, err
	}
	return Made{ID: id, Details: details, Expires: event.Time(next.expires), Link: next.link}, nil
}

// mayResend refuses somebody who may not send an invitation again. Support gives nothing by it, but must not see the
// link.
func (s Invitations) mayResend(tx *event.Tx, permit access.Permit, i *event.Object[Invitation]) error {
	if permit.Supports() {
		if !s.Mail {
			return user.ErrDeliveryNotConfigured
		}
		return nil
	}
	roles, all, err := role.Current(i.Org, i.Data.Roles,
		func(id string) (*event.Object[role.Role], error) { return role.Kind.Follow(tx, id) })
	if err != nil {
		return err
	}
	if !all {
		return errRoleGone
	}
	if err := giverOf(permit).mayGive(i.Org, roles); err != nil {
		return err
	}
	if len(i.Data.AppRoles) > 0 && !permit.Holds(access.AppRoleWrite, i.Org) {
		return access.ErrDenied
	}
	return mayAddToAll(tx, permit, i.Data.Groups)
}

// Withdraw takes an invitation back. Errors: ErrNotFound; ErrNotPending; Aborted when match does not hold.
func (s Invitations) Withdraw(ctx context.Context, permit access.Permit, id string,
	match event.IfMatch) (event.Details, error) {
	needs := event.Command{Rows: []event.RowKey{countOf(permit.Org()).Row}}
	return Within(permit, id).Needs(needs).Change(ctx, s.Store, match,
		func(tx *event.Tx, i *event.Object[Invitation]) error {
			if i.Data.State != Pending || tx.Now() >= i.Data.Expires {
				return ErrNotPending
			}
			return end(tx, i, WasWithdrawn{})
		})
}

// end ends a pending invitation that nobody has accepted, with the key of the address. The command declared it, and the
// count of its organization.
func end(tx *event.Tx, i *event.Object[Invitation], fact event.Fact[Invitation]) error {
	if err := settled(tx, i); err != nil {
		return err
	}
	if err := i.Erase(); err != nil {
		return err
	}
	return i.Append(fact)
}

// settled forgets what only a pending invitation has.
func settled(tx *event.Tx, i *event.Object[Invitation]) error {
	tx.DropRow(sweepRow(i.Data.Expires, i.ID))
	c, err := countOf(i.Org).Get(tx)
	if err != nil {
		return err
	}
	c.Pending = max(c.Pending-1, 0)
	countOf(i.Org).Put(tx, c, countKept)
	return nil
}

// errFull says that there are as many pending invitations as there may be, if nobody has miscounted.
var errFull = errors.New("invitation: the count says that the organization is full")

// counting tries something that counts invitations, and counts anew where there seem to be too many.
func (s Invitations) counting(ctx context.Context, orgID string, next *sending, try func() error) error {
	err := try()
	if !errors.Is(err, errFull) {
		return err
	}
	var pending int64
	for after := (&event.Cursor{}); after != nil && pending <= maxPending; {
		var page []*event.Object[Invitation]
		if page, after, err = Kind.List(ctx, s.Store,
			event.Query{Org: orgID, Where: event.Where(event.State, string(Pending)), After: *after,
				Limit: 500}); err != nil {
			return err
		}
		pending += int64(len(page))
	}
	next.recounted = &pending
	if err = try(); errors.Is(err, errFull) {
		return ErrTooMany
	}
	return err
}

// Counts counts the mails with invitations that one organization sends to one address.
func Counts(master secret.MasterKey, org, emailKey string) mailcount.Count {
	return mailcount.Of(master, "invitation", org, emailKey)
}

// CountsEverywhere counts those of all organizations. Nobody is told of this count: it would say that others have
// invited the person.
func CountsEverywhere(master secret.MasterKey, emailKey string) mailcount.Count {
	return mailcount.Of(master, "invitations", emailKey)
}

// EndWithOrganization ends an invitation whose organization is gone, with the key of the address. The command declared
// it for writing.
func EndWithOrganization(tx *event.Tx, i *event.Object[Invitation]) error {
	if i.Data.State == Removed {
		return nil
	}
	tx.DropRow(sweepRow(i.Data.Expires, i.ID))
	countOf(i.Org).Drop(tx)
	if err := i.Erase(); err != nil {
		return err
	}
	return i.Append(WasRemoved{})
}

// OfUser lists the invitations that a user has accepted. The code that erases a user needs them.
func OfUser(ctx context.Context, r event.Reader, userID string) (refs []event.Ref, err error) {
	for after := (&event.Cursor{}); after != nil; {
		var page []*event.Object[Invitation]
		if page, after, err = Kind.List(ctx, r,
			event.Query{Group: AcceptedBy(userID), After: *after, Limit: 500}); err != nil {
			return nil, err
		}
		for _, i := range page {
			refs = append(refs, Kind.Ref(i.ID))
		}
	}
	return refs, nil
}

// Erase leaves nothing of the address in an invitation whose user is removed. The command declared it for writing.
func Erase(tx *event.Tx, id string) error {
	i, err := Kind.Get(tx, id)
	if err != nil || i == nil || i.Data.State != Accepted || i.Data.Email == "" {
		return err
	}
	return Kind.Erase(tx, id, Erased{})
}
