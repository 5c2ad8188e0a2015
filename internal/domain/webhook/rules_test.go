package webhook

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

var (
	invalid = &errs.Error{Kind: errs.InvalidArgument, Reason: errs.InvalidRequest}
	quiet   = log.New(io.Discard, "", 0)
)

// names is a resolver that knows one address of each.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(n[host])}, nil
}

// containsKey looks for a secret in the forms that it could have.
func containsKey(text string, key []byte) bool {
	return slices.ContainsFunc([]string{string(key), hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key),
		base64.RawURLEncoding.EncodeToString(key)},
		func(form string) bool { return strings.Contains(text, form) })
}

// The example of the Standard Webhooks specification and its libraries.
func TestSignaturesAreThoseOfTheSpecification(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	must(t, err)
	got := signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s := secrets{Current: []byte("new"), Old: []byte("old"), OldUntil: 10}
	both := signature(s.Current, "i", 1, nil) + " " + signature(s.Old, "i", 1, nil)
	if got := s.signatures(9, "i", 1, nil); got != both {
		t.Errorf("before its end: %s", got)
	}
	if got := s.signatures(10, "i", 1, nil); got != signature(s.Current, "i", 1, nil) {
		t.Errorf("at its end: %s", got)
	}
}

func TestSettingsThatAreWrong(t *testing.T) {
	good := "https://example.org/hook"
	for _, c := range []struct {
		name string
		s    Settings
		want string
	}{
		{"plain", Settings{URL: good}, "[]"},
		{"with a query", Settings{URL: good + "?a=b"}, "[]"},
		{"types", Settings{URL: good, Types: []string{"user.*", "app.added.v1", "sign_in.failed.v12"}}, "[]"},
		{"nothing", Settings{}, "[url]"},
		{"no host", Settings{URL: "https:///hook"}, "[url]"},
		{"relative", Settings{URL: "/hook"}, "[url]"},
		{"opaque", Settings{URL: "https:example.org"}, "[url]"},
		{"another scheme", Settings{URL: "ftp://example.org"}, "[url]"},
		{"a file", Settings{URL: "file:///etc/passwd"}, "[url]"},
		{"a user", Settings{URL: "https://ada@example.org"}, "[url]"},
		{"a password", Settings{URL: "https://ada:pw@example.org"}, "[url]"},
		{"a fragment", Settings{URL: good + "#x"}, "[url]"},
		{"an empty fragment", Settings{URL: good + "#"}, "[url]"},
		{"a blank", Settings{URL: "https://example.org/a b"}, "[url]"},
		{"a line", Settings{URL: "https://example.org/\r\nHost: x"}, "[url]"},
		{"a backslash", Settings{URL: `https://example.org\@inside.example`}, "[url]"},
		{"too long", Settings{URL: good + "/" + strings.Repeat("a", maxURL)}, "[url]"},
		{"a star alone", Settings{URL: good, Types: []string{"*"}}, "[types[0]]"},
		{"half a star", Settings{URL: good, Types: []string{"user.add*"}}, "[types[0]]"},
		{"no version", Settings{URL: good, Types: []string{"user.*", "user.added"}}, "[types[1]]"},
		{"twice", Settings{URL: good, Types: []string{"user.*", "user.*"}}, "[types[1]]"},
		{"an organization twice", Settings{URL: good, OrganizationIDs: []string{"org_a", "org_a"}},
			"[organizationIds[1]]"},
		{"all and some", Settings{URL: good, AllOrganizations: true, OrganizationIDs: []string{"org_a"}},
			"[organizationIds]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fields := []string{}
			for _, v := range c.s.Violations() {
				if fields = append(fields, v.Field); strings.Contains(v.Message, "pw@") {
					t.Errorf("%q repeats the address", v.Message)
				}
			}
			if got := fmt.Sprint(fields); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWhichEventsAWebhookGets(t *testing.T) {
	of := func(org string, typ event.Type) *event.Event { return &event.Event{Org: org, Type: typ, ObjectID: "x"} }
	role := func(scope string) *event.Event {
		e := of("org_d", "user.membership_set.v1")
		e.Payload = []byte(`{"scope":"` + scope + `"}`)
		return e
	}
	for _, c := range []struct {
		name string
		s    Selection
		e    *event.Event
		want bool
	}{
		{"a role here", Selection{}, role("org_d"), true},
		{"a role of one of its users elsewhere", Selection{}, role("org_b"), false},
		{"a role of one of its users in the installation", Selection{}, role(access.Installation), false},
		{"its own", Selection{}, of("org_d", "user.removed.v1"), true},
		{"another's", Selection{}, of("org_b", "user.removed.v1"), false},
		{"the installation's, which stand with the default organization", Selection{},
			of("org_d", "installation.owner_added.v1"), false},
		{"the signing keys'", Selection{}, of(access.Installation, "signing.key_added.v1"), false},
		{"all", Selection{AllOrganizations: true}, of("org_b", "user.removed.v1"), true},
		{"all, and the installation's", Selection{AllOrganizations: true},
			of("org_d", "installation.owner_added.v1"), true},
		{"all, and the signing keys'", Selection{AllOrganizations: true},
			of(access.Installation, "signing.key_added.v1"), true},
		{"some organizations", Selection{OrganizationIDs: []string{"org_b"}}, of("org_b", "user.removed.v1"), true},
		{"some, and not the own", Selection{OrganizationIDs: []string{"org_b"}}, of("org_d", "user.removed.v1"), false},
		{"some, and not the installation", Selection{OrganizationIDs: []string{"org_d"}},
			of("org_d", "installation.owner_added.v1"), false},
		{"another type", Selection{Types: []string{"user.added.v1"}}, of("org_d", "user.removed.v1"), false},
		{"another version", Selection{Types: []string{"user.removed.v2"}}, of("org_d", "user.removed.v1"), false},
		{"a kind", Selection{Types: []string{"app.*", "user.*"}}, of("org_d", "user.removed.v1"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.s.wants("org_d", c.e); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// rules is a store in memory with the organizations a, b and d, of which d is the default one.
func rules(t *testing.T) (*eventtest.Store, *Webhooks) {
	s := eventtest.New(t, installation.Kind, org.Kind, Kind)
	for _, id := range []string{"org_a", "org_b", "org_d"} {
		eventtest.Given(t, s, org.Kind, id, id, nil, org.Added{Name: id})
	}
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_d", nil, installation.Added{DefaultOrg: "org_d"})
	client := outbound.New(outbound.Config{})
	return s, &Webhooks{Store: s, Root: s.Master, Outbound: client, Clock: s.Now}
}

const somewhere = "https://example.org/hook"

func TestAWebhookIsAddedChangedAndRemoved(t *testing.T) {
	s, hooks := rules(t)
	me := permit(t, "org_a", access.WebhookWrite, access.OrgOwner)
	mark := s.Mark()
	created, err := hooks.Add(t.Context(), me,
		New{Name: "Audit", Settings: Settings{URL: somewhere, Types: []string{"user.*"}}})
	must(t, err)
	id := created.ID
	s.Then(t, mark, eventtest.Fact{Object: id, Type: "webhook.added.v2",
		Payload: `{"name":"Audit","nameKey":"audit","address":"https://example.org/…","types":["user.*"]}`})
	if s.Stored(t, strings.TrimPrefix(created.Secret, "whsec_")) || s.Stored(t, somewhere) {
		t.Error("the secret, or the address, is stored as it is")
	}
	none, yes, name := []string{}, true, "Trail"
	mark = s.Mark()
	_, err = hooks.Modify(t.Context(), me, id, event.IfMatch{Set: true, Sequence: 1},
		Modification{Name: &name, Types: &none, PersonalData: &yes})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: id, Type: "webhook.settings_changed.v2",
		Payload: `{"name":"Trail","nameKey":"trail","types":[],"personalData":true}`})
	same, elsewhere := somewhere, "https://example.org/another/secret"
	mark = s.Mark()
	_, err = hooks.Modify(t.Context(), me, id, event.IfMatch{}, Modification{URL: &same})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: id, Type: "webhook.settings_changed.v2", Payload: `{}`})
	mark = s.Mark()
	_, err = hooks.Modify(t.Context(), me, id, event.IfMatch{}, Modification{URL: &elsewhere})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: id, Type: "webhook.settings_changed.v2",
		Payload: `{"address":"https://example.org/…"}`})
	if s.Stored(t, elsewhere) {
		t.Error("the address is stored as it is")
	}
	bad := "https://127.0.0.1/"
	_, err = hooks.Modify(t.Context(), me, id, event.IfMatch{}, Modification{URL: &bad})
	refused(t, err, invalid, "url")
	_, err = hooks.Reactivate(t.Context(), me, id, event.IfMatch{})
	refused(t, err, ErrNotInactive)
	_, err = hooks.Deactivate(t.Context(), me, id, event.IfMatch{})
	must(t, err)
	_, err = hooks.Deactivate(t.Context(), me, id, event.IfMatch{})
	refused(t, err, ErrNotActive)
	mark = s.Mark()
	_, text, err := hooks.RotateSecret(t.Context(), me, id, event.IfMatch{}, time.Hour)
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: id, Type: "webhook.secret_set.v1",
		Payload: fmt.Sprintf(`{"oldUntil":%d}`, event.Micros(s.Now().Add(time.Hour)))})
	if text == created.Secret || s.Stored(t, strings.TrimPrefix(text, "whsec_")) {
		t.Error("the secret is the old one, or stored as it is")
	}
	if row, err := s.Row(t.Context(), event.SecretOf(id)); err != nil {
		t.Error(err)
	} else if kept, err := secretsIn(hooks.Root, id, row); err != nil || kept.URL != elsewhere {
		t.Errorf("with the new secret messages go to %q (%v)", kept.URL, err)
	}
	_, err = hooks.Remove(t.Context(), me, id, event.IfMatch{Set: true, Sequence: 99})
	if errs.KindOf(err) != errs.Aborted {
		t.Errorf("removed at another sequence: %v", err)
	}
	_, err = hooks.Remove(t.Context(), me, id, event.IfMatch{})
	must(t, err)
	_, err = hooks.Get(t.Context(), me, id)
	refused(t, err, ErrNotFound)
	if row, err := s.Row(t.Context(), event.SecretOf(id)); err != nil || row != nil {
		t.Errorf("its secret is left: %v", err)
	}
}

func TestAnOrganizationHasABoundedNumberOfWebhooks(t *testing.T) {
	_, hooks := rules(t)
	me := permit(t, "org_a", access.WebhookWrite, access.OrgOwner)
	for range maxWebhooks {
		_, err := hooks.Add(t.Context(), me, New{Name: "n", Settings: Settings{URL: somewhere}})
		must(t, err)
	}
	_, err := hooks.Add(t.Context(), me, New{Name: "n", Settings: Settings{URL: somewhere}})
	refused(t, err, ErrTooMany)
	_, err = hooks.Add(t.Context(), permit(t, "org_b", access.WebhookWrite, access.OrgOwner),
		New{Name: "n", Settings: Settings{URL: somewhere}})
	must(t, err)
}

// What happens elsewhere is for those who may look there.
func TestWhoMayLookIntoOtherOrganizations(t *testing.T) {
	_, hooks := rules(t)
	root := permit(t, "org_d", access.WebhookWrite, access.IAMOwner)
	all, some := Settings{URL: somewhere, AllOrganizations: true},
		Settings{URL: somewhere, OrganizationIDs: []string{"org_b"}}
	for _, wide := range []Settings{all, some} {
		for name, c := range map[string]struct {
			p    access.Permit
			want *errs.Error
		}{
			"an owner of the installation, for the default organization": {root, nil},
			"an owner of the installation, for another organization": {permit(t, "org_a", access.WebhookWrite,
				access.IAMOwner), ErrNotDefault},
			"an owner of the default organization": {permit(t, "org_d", access.WebhookWrite,
				access.OrgOwner), access.ErrDenied},
			"an owner of another organization": {permit(t, "org_a", access.WebhookWrite,
				access.OrgOwner), access.ErrDenied},
		} {
			_, err := hooks.Add(t.Context(), c.p, New{Name: "n", Settings: wide})
			if c.want == nil {
				must(t, err)
			} else if refused(t, err, c.want); t.Failed() {
				t.Log(name)
			}
		}
	}
	_, err := hooks.Add(t.Context(), root,
		New{Name: "n", Settings: Settings{URL: somewhere, OrganizationIDs: []string{"org_b", "org_none"}}})
	refused(t, err, invalid, "organizationIds[1]")

	// Whoever may change the default organization's webhooks may not turn such a one to themselves, nor see what it
	// sends.
	created, err := hooks.Add(t.Context(), root, New{Name: "n", Settings: all})
	must(t, err)
	narrow, err := hooks.Add(t.Context(), root, New{Name: "n", Settings: Settings{URL: somewhere}})
	must(t, err)
	lesser, viewer := permit(t, "org_d", access.WebhookWrite, access.OrgOwner),
		permit(t, "org_d", access.WebhookRead, access.IAMOwnerViewer)
	ctx, id, none := t.Context(), created.ID, event.IfMatch{}
	mine, yes, no := "https://example.com/mine", true, false
	for name, try := range map[string]func(p access.Permit) error{
		"url": func(p access.Permit) error {
			_, err := hooks.Modify(ctx, p, id, none, Modification{URL: &mine})
			return err
		},
		"less": func(p access.Permit) error {
			_, err := hooks.Modify(ctx, p, id, none, Modification{AllOrganizations: &no})
			return err
		},
		"more": func(p access.Permit) error {
			_, err := hooks.Modify(ctx, p, narrow.ID, none, Modification{AllOrganizations: &yes})
			return err
		},
		"secret": func(p access.Permit) error { _, _, err := hooks.RotateSecret(ctx, p, id, none, 0); return err },
		"test":   func(p access.Permit) error { _, err := hooks.Test(ctx, p, id); return err },
		"off":    func(p access.Permit) error { _, err := hooks.Deactivate(ctx, p, id, none); return err },
		"remove": func(p access.Permit) error { _, err := hooks.Remove(ctx, p, id, none); return err },
		"replay": func(p access.Permit) error { _, _, err := hooks.Replay(ctx, p, id, none, ""); return err },
		"skip":   func(p access.Permit) error { _, err := hooks.Skip(ctx, p, id, none, "x.1"); return err },
	} {
		for _, p := range []access.Permit{lesser, viewer} {
			if refused(t, try(p), access.ErrDenied); t.Failed() {
				t.Fatal(name)
			}
		}
	}
	for name, read := range map[string]func(p access.Permit) error{
		"failed": func(p access.Permit) error {
			_, _, err := hooks.Failures(ctx, p, id, true, event.Cursor{}, 1)
			return err
		},
		"held": func(p access.Permit) error {
			_, _, err := hooks.HeldEvents(ctx, p, id, event.Cursor{}, 1)
			return err
		},
		"attempts": func(p access.Permit) error { _, err := hooks.Attempts(ctx, p, id); return err },
	} {
		if refused(t, read(lesser), access.ErrDenied); t.Failed() {
			t.Fatal(name)
		}
		must(t, read(viewer))
	}
	for _, p := range []access.Permit{permit(t, "org_a", access.WebhookWrite, access.IAMOwner),
		permit(t, "org_b", access.WebhookWrite, access.OrgOwner)} {
		_, err := hooks.Get(ctx, p, id)
		refused(t, err, ErrNotFound)
	}
}

func TestASecretThatIsNotThereIsAnError(t *testing.T) {
	if _, err := secretsIn(secret.NewMasterKey(), "whk_1", nil); err == nil {
		t.Error("a webhook without a secret has one")
	}
}
