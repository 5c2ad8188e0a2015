package rpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
)

// registry stands for the organizations there are. It remembers what it was asked.
type registry struct {
	mu    sync.Mutex
	known []string
	asked []string
	err   error // instead of any answer
}

var errNoOrg = errs.New(errs.NotFound, "ORGANIZATION_UNKNOWN", "there is no such organization")

func (r *registry) exists(_ context.Context, _ *access.Caller, id string, _ access.Permission) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, id)
	if r.err == nil && !slices.Contains(r.known, id) {
		return errNoOrg
	}
	return r.err
}

// forget removes an organization.
func (r *registry) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = slices.DeleteFunc(r.known, func(known string) bool { return known == id })
}

func (r *registry) questions() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

func (r *registry) reset(known ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.asked = known, nil
}

// abroad holds roles in organizations besides the own, one of which is no longer there.
var abroad = map[string]*access.Caller{
	"guest": {UserID: "usr_5", OrgID: "org_own",
		Memberships: access.Memberships{"org_other": {access.OrgOwner}, "org_gone": {access.OrgOwner}}},
	"viewer": {
		UserID: "usr_6",
		OrgID:  "org_own",
		Memberships: access.Memberships{access.Installation: {access.IAMOwnerViewer},
			"org_gone": {access.OrgOwner}},
	},
}

func withGuests(ctx context.Context, token string) (*access.Caller, error) {
	if c := abroad[token]; c != nil {
		return c, nil
	}
	return lookup(ctx, token)
}

func TestARightCountsOnlyInAnOrganizationThatExists(t *testing.T) {
	const orgHeader = "x-service-orgid"
	getOrg := func(id string) ask {
		return ask{"OrganizationService/GetOrganization", "GET", "/v1/orgs/" + id,
			&signetv1.GetOrganizationRequest{OrgId: id}, nil}
	}
	orgs := &registry{}
	l := newLab(t, func(c *Config) { c.Authenticate, c.Organization = withGuests, orgs.exists })
	for _, tt := range []struct {
		name   string
		ask    ask
		as     string
		header []string
		code   int32
		reason errs.Reason
		asked  []string
	}{
		{"the own is not asked for", getUser, "owner", nil, 0, "", nil},
		{"nor when the header says so", getUser, "owner", []string{orgHeader, "org_own"}, 0, "", nil},
		{"nor when the path does", getOrg("org_own"), "owner", nil, 0, "", nil},
		{"another one that is there", getUser, "admin", []string{orgHeader, "org_other"}, 0, "", []string{"org_other"}},
		{"another one in the path", getOrg("org_other"), "admin", nil, 0, "", []string{"org_other"}},
		{"a guest", getUser, "guest", []string{orgHeader, "org_other"}, 0, "", []string{"org_other"}},
		{"unknown, to who has a role in the installation", getUser, "admin", []string{orgHeader, "org_x"}, 5,
			"ORGANIZATION_UNKNOWN", []string{"org_x"}},
		{"unknown in the path", getOrg("org_x"), "admin", nil, 5, "ORGANIZATION_UNKNOWN", []string{"org_x"}},
		{"unknown, to who has none", getUser, "owner", []string{orgHeader, "org_x"}, 7, access.PermissionDenied, nil},
		{"unknown, to who may nothing", getUser, "nobody", []string{orgHeader, "org_x"}, 7,
			access.PermissionDenied, nil},
		{"gone, to who still has a role there", getUser, "guest", []string{orgHeader, "org_gone"}, 7,
			access.PermissionDenied, []string{"org_gone"}},
		{"gone, in the path", getOrg("org_gone"), "guest", nil, 7, access.PermissionDenied, []string{"org_gone"}},
		{"gone, to who may in the installation too", getUser, "viewer", []string{orgHeader, "org_gone"}, 5,
			"ORGANIZATION_UNKNOWN", []string{"org_gone"}},
		{"gone, to who has a role in the installation that does not say so", setPassword, "viewer",
			[]string{orgHeader, "org_gone"}, 7, access.PermissionDenied,
			[]string{"org_gone"}},
		{"the installation is no organization", getUser, "admin", []string{orgHeader, access.Installation}, 5,
			"ORGANIZATION_UNKNOWN",
			[]string{access.Installation}},
		{"nor in the path", getOrg(access.Installation), "admin", nil, 5, "ORGANIZATION_UNKNOWN",
			[]string{access.Installation}},
		{"what is about the installation asks for none", setupOrg, "admin", nil, 0, "", nil},
		{"what is about oneself asks for none", getMe, "admin", nil, 0, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.everywhere(t, tt.ask.as(tt.as, tt.header...), func(t *testing.T, o outcome) {
				if o.code != tt.code || o.reason != string(tt.reason) {
					t.Errorf("got %d %s", o.code, o.reason)
				}
				if asked := orgs.questions(); !slices.Equal(asked, tt.asked) {
					t.Errorf("asked for %q", asked)
				}
			}, func() { orgs.reset("org_other") })
		})
	}
	t.Run("storage is away", func(t *testing.T) {
		orgs.err = errs.New(errs.Unavailable, "STORAGE_UNAVAILABLE", "try again")
		defer func() { orgs.err = nil }()
		for _, who := range []string{"admin", "guest"} {
			if o := l.rest(t, l.h1, "GET", "/v1/orgs/org_other", "", bearerOf(who)); o.code != 14 {
				t.Errorf("%s: got %d %s", who, o.code, o.reason)
			}
		}
	})
}

func TestARenewedPermitAsksForTheOrganizationAgain(t *testing.T) {
	for _, tt := range []struct {
		as     string
		reason errs.Reason
	}{{"admin", "ORGANIZATION_UNKNOWN"}, {"guest", access.PermissionDenied}} {
		t.Run(tt.as, func(t *testing.T) {
			orgs := &registry{}
			l := newLab(t, func(c *Config) { c.Authenticate, c.Organization = withGuests, orgs.exists })
			l.fake.hook = func(ctx context.Context) error {
				permit, err := call.From(ctx).Permit.Renew(ctx)
				if err != nil || !permit.Reaches("org_other") {
					t.Errorf("renewed too early: %v", err)
				}
				orgs.forget("org_other")
				again, err := permit.Renew(ctx)
				if err == nil || again.Reaches("org_other") {
					return errors.New("a permit for an organization that is gone")
				}
				return err
			}
			l.everywhere(t, setPassword.as(tt.as, "x-service-orgid", "org_other"), func(t *testing.T, o outcome) {
				if o.reason != string(tt.reason) {
					t.Errorf("got %d %s %s", o.code, o.reason, o.message)
				}
			}, func() { orgs.reset("org_other") })
		})
	}
}
