package idp_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// counting counts what is read.
type counting struct {
	event.Store
	records int
}

func (c *counting) List(ctx context.Context, q event.Query) (event.Page, error) {
	page, err := c.Store.List(ctx, q)
	c.records += len(page.Records)
	return page, err
}

// many has so many providers of org_a that can be used, with two others before each of them that cannot, and three of
// the default organization.
func many(t *testing.T, n int) (s *counting, own, shared []string) {
	t.Helper()
	store := eventtest.New(t, org.Kind, idp.Kind)
	for _, id := range []string{"org_a", "org_default", "org_b"} {
		eventtest.Given(t, store, org.Kind, id, id, nil, org.Added{Name: id})
	}
	add := func(id, owner, name string, more ...event.Fact[idp.Provider]) string {
		eventtest.Given(t, store, idp.Kind, id, owner, nil,
			append([]event.Fact[idp.Provider]{idp.JWTAdded{General: idp.General{Name: name,
				NameKey: syntax.NameKey(name)}, JWT: jwt}}, more...)...)
		return id
	}
	vouched := idp.Vouched{By: "usr_a"}
	for i := range n {
		if i < 3 {
			add(fmt.Sprintf("idp_%04d_a", i), "org_a", "Off", vouched, idp.Deactivated{})
			add(fmt.Sprintf("idp_%04d_b", i), "org_a", "Nobody's")
		}
		own = append(own, add(fmt.Sprintf("idp_%04d_c", i), "org_a", fmt.Sprintf("Corp %04d", n-i), vouched))
	}
	for i := range 3 {
		shared = append(shared, add(fmt.Sprintf("idp_9%03d", i), "org_default", fmt.Sprint("Shared ", i), vouched))
	}
	add("idp_foreign", "org_b", "Corp 0001", vouched)
	return &counting{Store: store}, own, shared
}

// walk reads all parts.
func walk(t *testing.T, s event.Store, p idp.SignInProviders, part idp.Part) (ids []string) {
	t.Helper()
	for {
		o, err := p.Part(t.Context(), s, part)
		must(t, err)
		if len(o.Providers) > idp.PerPage {
			t.Errorf("%d on one page", len(o.Providers))
		}
		for _, f := range o.Providers {
			ids = append(ids, f.ID)
		}
		if part.After = o.More; o.More == "" {
			return ids
		}
	}
}

func TestEveryProviderThatIsOfferedIsReached(t *testing.T) {
	s, own, shared := many(t, 45)
	providers := idp.SignInProviders{Org: "org_a", DefaultOrg: "org_default"}
	if got := walk(t, s, providers, idp.Part{}); !slices.Equal(got, slices.Concat(own, shared)) {
		t.Errorf("got %v", got)
	}
	// by name
	if got := walk(t, s, providers, idp.Part{Begins: "cORP 00"}); len(got) != 45 || got[0] != own[44] ||
		got[44] != own[0] {
		t.Errorf("got %v", got)
	}
	if got := walk(t, s, providers, idp.Part{Begins: "corp 0001"}); !slices.Equal(got, own[44:]) {
		t.Errorf("got %v", got)
	}
	if got := walk(t, s, providers, idp.Part{Begins: "nobody"}); got != nil {
		t.Errorf("got %v", got)
	}
	if got := walk(t, s, providers,
		idp.Part{Skip: func(p *event.Object[idp.Provider]) bool {
			return p.ID != own[30]
		}}); !slices.Equal(got, own[30:31]) {
		t.Errorf("got %v", got)
	}
	if got := walk(t, s, idp.SignInProviders{Org: "org_default", DefaultOrg: "org_default"},
		idp.Part{}); !slices.Equal(got, shared) {
		t.Errorf("got %v", got)
	}
	for _, wrong := range []string{"idp_none", "idp_foreign"} { // nobody leads there
		if got := walk(t, s, providers, idp.Part{After: wrong}); !slices.Equal(got, slices.Concat(own, shared)) {
			t.Errorf("after %s: got %v", wrong, got)
		}
	}
}

func TestAPolicyComesBeforeAnyCut(t *testing.T) {
	s, own, shared := many(t, 45)
	named := append(slices.Clone(own[20:44]), shared[1], "idp_foreign", "idp_0000_a", "idp_0000_b", "idp_none")
	providers := idp.SignInProviders{Org: "org_a", DefaultOrg: "org_default", Ways: policy.SignIn{Providers: named}}
	if got := walk(t, s, providers, idp.Part{}); !slices.Equal(got, slices.Concat(own[20:44], shared[1:2])) {
		t.Errorf("got %v", got)
	}
	if got := walk(t, s, providers, idp.Part{Begins: "shared"}); !slices.Equal(got, shared[1:2]) {
		t.Errorf("got %v", got)
	}
	for id, want := range map[string]bool{own[44]: false, own[43]: true, shared[1]: true, shared[0]: false,
		"idp_foreign": false, "idp_0000_a": false, "idp_0000_b": false, "idp_none": false, "": false} {
		if found, err := providers.Offered(t.Context(), s, id); err != nil || (found != nil) != want {
			t.Errorf("%s: %v, %v", id, found, err)
		}
	}
	providers.Ways = policy.SignIn{SignInMethods: []policy.Way{policy.WithPassword}}
	if got := walk(t, s, providers, idp.Part{}); got != nil {
		t.Errorf("got %v", got)
	}
	providers.Ways = policy.SignIn{}
	if found, err := providers.Offered(t.Context(), s, own[44]); err != nil || found == nil {
		t.Errorf("the last one: %v, %v", found, err)
	}
}

func TestWhatAPageOfProvidersCostsDoesNotDependOnHowManyThereAre(t *testing.T) {
	s, _, _ := many(t, 1000)
	o, err := idp.SignInProviders{Org: "org_a", DefaultOrg: "org_default"}.Part(t.Context(), s, idp.Part{})
	must(t, err)
	if len(o.Providers) != idp.PerPage || o.More == "" || s.records > 3*idp.PerPage {
		t.Errorf("%d shown, %d read", len(o.Providers), s.records)
	}
}
