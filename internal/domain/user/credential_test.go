package user_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

var manages = access.Memberships{"org_a": {access.OrgUserManager}}

// newKey is the PEM of a key that nobody else has.
func newKey(t *testing.T) string {
	t.Helper()
	key, _, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// withRobot has the service user usr_robot in org_a.
func withRobot(t *testing.T) *eventtest.Store {
	t.Helper()
	s := eventtest.New(t, user.Kind)
	must(t, service(t, s, "usr_robot", "org_a", "robot"))
	return s
}

func matches(t *testing.T, s *eventtest.Store, text string) bool {
	t.Helper()
	row, err := s.Row(t.Context(), user.SecretRow("usr_robot"))
	must(t, err)
	return user.SecretMatches(&eventtest.State(t, s, user.Kind, "usr_robot").Data, row, text)
}

func TestASecretIsShownOnceAndKeptAsItsHash(t *testing.T) {
	s := withRobot(t)
	p := permit(t, "org_a", manages)
	mark := s.Mark()
	d, text, err := user.SetSecret(t.Context(), s, p, "usr_robot", event.IfMatch{Set: true, Sequence: 1})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_robot", Type: "user.secret_set.v1", Payload: `{}`})
	if u := eventtest.State(t, s, user.Kind, "usr_robot"); d != u.Details() || d.Sequence != 2 ||
		!u.Data.Service.HasSecret {
		t.Errorf("details %+v, state %+v", d, u.Data)
	}
	if !strings.HasPrefix(text, "sgn_sec_") || s.Stored(t, text) {
		t.Error("it has another form, or is stored in the clear")
	}
	sum := sha256.Sum256([]byte(text))
	row, err := s.Row(t.Context(), user.SecretRow("usr_robot"))
	must(t, err)
	if row.Key != "usr_robot/secret" || !bytes.Equal(row.Value, sum[:]) {
		t.Errorf("stored under %s: %x", row.Key, row.Value)
	}
	for _, f := range s.Since(t, 0) {
		if strings.Contains(f.Payload+f.Personal, hex.EncodeToString(sum[:])) {
			t.Error("the hash is in the log")
		}
	}
	if !matches(t, s, text) {
		t.Error("it does not count")
	}

	_, next, err := user.SetSecret(t.Context(), s, p, "usr_robot", event.IfMatch{})
	must(t, err)
	if matches(t, s, text) || !matches(t, s, next) {
		t.Error("the earlier secret still counts, or the new one does not")
	}
	mark = s.Mark()
	_, err = user.RemoveSecret(t.Context(), s, p, "usr_robot", event.IfMatch{})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_robot", Type: "user.secret_removed.v1", Payload: `{}`})
	if row, _ := s.Row(t.Context(), user.SecretRow("usr_robot")); row != nil || matches(t, s, next) {
		t.Error("a removed secret is still there")
	}
	_, err = user.RemoveSecret(t.Context(), s, p, "usr_robot", event.IfMatch{Set: true, Sequence: 1})
	eventtest.As(t, err, user.ErrSecretNotFound)
}

func TestWhenASecretCounts(t *testing.T) {
	text, hash := secret.NewToken(secret.Client)
	other, _ := secret.NewToken(secret.Client)
	pat, patHash := secret.NewToken(secret.PAT)
	zero := make([]byte, 32)
	stored := &event.Row{Value: hash}
	active := user.User{Standing: user.Standing{State: user.Active}, Service: &user.Service{HasSecret: true}}
	change := func(f func(*user.User)) *user.User {
		u, v := active, *active.Service
		u.Service = &v
		f(&u)
		return &u
	}
	for _, c := range []struct {
		name string
		u    *user.User
		row  *event.Row
		text string
		want bool
	}{
		{"it does", &active, stored, text, true},
		{"another one", &active, stored, other, false},
		{"nothing", &active, stored, "", false},
		{"a bit of it", &active, stored, text[:len(text)-1], false},
		{"a token of another kind with that hash", &active, &event.Row{Value: patHash}, pat, false},
		{"nobody", nil, stored, text, false},
		{"no row", &active, nil, text, false},
		{"an empty row", &active, &event.Row{}, text, false},
		{"a row of zeros", &active, &event.Row{Value: zero}, text, false},
		{"a user without one", change(func(u *user.User) { u.Service.HasSecret = false }), stored, text, false},
		{"an inactive user", change(func(u *user.User) { u.State = user.Inactive }), stored, text, false},
		{"a locked user", change(func(u *user.User) { u.State = user.Locked }), stored, text, false},
		{"a removed user", change(func(u *user.User) { *u = user.User{Standing: user.Standing{State: user.Removed}} }),
			stored, text, false},
		{"a person", change(func(u *user.User) { u.Service, u.Human = nil, &user.Human{} }), stored, text, false},
	} {
		if got := user.SecretMatches(c.u, c.row, c.text); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestEverySecretRowOfAUserIsListed(t *testing.T) {
	rows := user.SecretRows("usr_a")
	for _, key := range []event.RowKey{user.PasswordRow("usr_a"), user.SecretRow("usr_a"), user.FactorsRow("usr_a")} {
		found := false
		for _, r := range rows {
			found = found || r == key
		}
		if !found {
			t.Errorf("%s would stay when the user goes", key.Key)
		}
	}
}

func TestKeysAreKeptInOneFormAndInOrder(t *testing.T) {
	s := withRobot(t)
	p := permit(t, "org_a", manages)
	text := newKey(t)
	expires := s.Now().Add(time.Hour + 1500*time.Nanosecond)
	mark := s.Mark()
	d, id, err := user.AddKey(t.Context(), s, p, "usr_robot", event.IfMatch{Set: true, Sequence: 1},
		user.NewKey{PublicKey: "\n" + strings.ReplaceAll(text, "\n", "\r\n"), Expires: &expires})
	must(t, err)
	now := event.Micros(s.Now())
	s.Then(t, mark, eventtest.Fact{
		Object: "usr_robot",
		Type:   "user.key_added.v1",
		Payload: `{"keyId":"` + id + `","publicKey":` + strconv.Quote(text) +
			`,"created":` + strconv.FormatInt(now, 10) + `,"expires":` + strconv.FormatInt(now+3_600_000_001, 10) + `}`,
	})
	if !strings.HasPrefix(id, "pky_") || d.Sequence != 2 {
		t.Errorf("key %s, details %+v", id, d)
	}
	_, second, err := user.AddKey(t.Context(), s, p, "usr_robot", event.IfMatch{}, user.NewKey{PublicKey: newKey(t)})
	must(t, err)
	keys := eventtest.State(t, s, user.Kind, "usr_robot").Data.Service.Keys
	if len(keys) != 2 || keys[0].ID != id || keys[0].PublicKey != text || keys[1].ID != second || keys[1].Expires != 0 {
		t.Errorf("keys %+v", keys)
	}
	mark = s.Mark()
	_, err = user.RemoveKey(t.Context(), s, p, "usr_robot", event.IfMatch{}, id)
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "usr_robot", Type: "user.key_removed.v1", Payload: `{"keyId":"` + id + `"}`})
	if keys = eventtest.State(t, s, user.Kind, "usr_robot").Data.Service.Keys; len(keys) != 1 || keys[0].ID != second {
		t.Errorf("keys %+v", keys)
	}
}

func TestKeysThatHaveExpiredMakeRoom(t *testing.T) {
	s := withRobot(t)
	p := permit(t, "org_a", manages)
	soon := s.Now().Add(time.Hour)
	first := newKey(t)
	for i := range user.MaxKeys {
		n := user.NewKey{PublicKey: first, Expires: &soon}
		if i > 0 {
			n.PublicKey = newKey(t)
		}
		_, _, err := user.AddKey(t.Context(), s, p, "usr_robot", event.IfMatch{}, n)
		must(t, err)
	}
	s.Advance(time.Hour - time.Microsecond)
	_, _, err := user.AddKey(t.Context(), s, p, "usr_robot", event.IfMatch{}, user.NewKey{PublicKey: newKey(t)})
	eventtest.As(t, err, user.ErrTooManyKeys)
	s.Advance(time.Microsecond)
	// One that has expired may come again.
	details, id, err := user.AddKey(t.Context(), s, p, "usr_robot", event.IfMatch{}, user.NewKey{PublicKey: first})
	must(t, err)
	u := eventtest.State(t, s, user.Kind, "usr_robot")
	if keys := u.Data.Service.Keys; len(keys) != 1 || keys[0].ID != id || details.Sequence != u.Sequence {
		t.Errorf("keys %+v, answered %+v", keys, details)
	}
}

func TestWhichKeysAreNotAdded(t *testing.T) {
	s := withRobot(t)
	must(t, service(t, s, "usr_full", "org_a", "full"))
	p := permit(t, "org_a", manages)
	text := newKey(t)
	for range user.MaxKeys {
		_, _, err := user.AddKey(t.Context(), s, p, "usr_full", event.IfMatch{}, user.NewKey{PublicKey: newKey(t)})
		must(t, err)
	}
	_, _, err := user.AddKey(t.Context(), s, p, "usr_robot", event.IfMatch{}, user.NewKey{PublicKey: text})
	must(t, err)
	stale := event.IfMatch{Set: true, Sequence: 99}
	moved := errs.New(errs.Aborted, event.SequenceMismatch, "")
	for _, c := range []struct {
		name    string
		id      string
		match   event.IfMatch
		key     string
		refusal *errs.Error
	}{
		{"the same key again", "usr_robot", event.IfMatch{}, text + "\n", user.ErrKeyExists},
		{"another sequence", "usr_robot", stale, newKey(t), moved},
		{"the same key is asked before the sequence", "usr_robot", stale, text, user.ErrKeyExists},
		{"one key too many", "usr_full", event.IfMatch{}, newKey(t), user.ErrTooManyKeys},
		{"the number is asked before the sequence", "usr_full", stale, newKey(t), user.ErrTooManyKeys},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Fingerprint()
			_, _, err := user.AddKey(t.Context(), s, p, c.id, c.match, user.NewKey{PublicKey: c.key})
			eventtest.As(t, err, c.refusal)
			if s.Fingerprint() != before {
				t.Error("something was written")
			}
		})
	}
	_, err = user.RemoveKey(t.Context(), s, p, "usr_robot", stale, "pky_x")
	eventtest.As(t, err, user.ErrKeyNotFound)

	for name, c := range map[string]struct {
		key    string
		after  time.Duration
		fields []string
	}{
		"no key":                            {"x", time.Hour, []string{"publicKey"}},
		"over before it begins":             {newKey(t), 0, []string{"expirationDate"}},
		"over within the microsecond":       {newKey(t), 900, []string{"expirationDate"}},
		"a microsecond is enough":           {newKey(t), time.Microsecond, nil},
		"for ever is fine":                  {newKey(t), -1, nil},
		"no key, and over before it begins": {"x", 0, []string{"publicKey", "expirationDate"}},
	} {
		n := user.NewKey{PublicKey: c.key}
		if at := s.Now().Add(c.after); c.after >= 0 {
			n.Expires = &at
		}
		_, _, err := user.AddKey(t.Context(), s, p, "usr_robot", event.IfMatch{}, n)
		if c.fields == nil {
			must(t, err)
			continue
		}
		t.Run(name, func(t *testing.T) {
			eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, c.fields...)
		})
	}
}

func TestCredentialsOfAServiceUserAreOnlyChangedByWhoeverMay(t *testing.T) {
	s := withRobot(t)
	must(t, human(t, s, "usr_a", "org_a", jo))
	must(t, service(t, s, "usr_owner", "org_a", "owner"))
	must(t, service(t, s, "usr_gone", "org_a", "gone"))
	must(t, service(t, s, "usr_off", "org_a", "off"))
	eventtest.Given(t, s, user.Kind, "usr_owner", "", nil,
		user.MembershipSet{Scope: "org_a", Roles: []access.Role{access.OrgOwner}})
	eventtest.Given(t, s, user.Kind, "usr_gone", "", nil, user.WasRemoved{})
	eventtest.Given(t, s, user.Kind, "usr_off", "", nil, user.Deactivated{})
	operations := map[string]func(ctx context.Context, p access.Permit, id string, m event.IfMatch) error{
		"set a secret": func(ctx context.Context, p access.Permit, id string, m event.IfMatch) error {
			_, text, err := user.SetSecret(ctx, s, p, id, m)
			if err != nil && text != "" {
				t.Error("a refusal shows a secret")
			}
			return err
		},
		"add a key": func(ctx context.Context, p access.Permit, id string, m event.IfMatch) error {
			_, _, err := user.AddKey(ctx, s, p, id, m, user.NewKey{PublicKey: newKey(t)})
			return err
		},
		"remove a secret": func(ctx context.Context, p access.Permit, id string, m event.IfMatch) error {
			_, err := user.RemoveSecret(ctx, s, p, id, m)
			return err
		},
		"remove a key": func(ctx context.Context, p access.Permit, id string, m event.IfMatch) error {
			keys := eventtest.State(t, s, user.Kind, "usr_robot").Data.Service.Keys
			_, err := user.RemoveKey(ctx, s, p, id, m, keys[len(keys)-1].ID)
			return err
		},
	}
	moved := errs.New(errs.Aborted, event.SequenceMismatch, "")
	stale := event.IfMatch{Set: true, Sequence: 99}
	must(t, operations["set a secret"](t.Context(), permit(t, "org_a", manages), "usr_robot", event.IfMatch{}))
	must(t, operations["add a key"](t.Context(), permit(t, "org_a", manages), "usr_robot", event.IfMatch{}))
	for name, do := range operations {
		for _, c := range []struct {
			name    string
			permit  access.Permit
			id      string
			refusal *errs.Error
		}{
			{"a permit of another organization",
				permit(t, "org_b", access.Memberships{access.Installation: {access.IAMOwner}}), "usr_robot",
				user.ErrNotFound},
			{"no permit", access.Permit{}, "usr_robot", user.ErrNotFound},
			{"an unknown user", permit(t, "org_a", manages), "usr_x", user.ErrNotFound},
			{"a removed user", permit(t, "org_a", manages), "usr_gone", user.ErrNotFound},
			{"a user who holds more", permit(t, "org_a", manages), "usr_owner", access.ErrTargetHoldsMore},
			{"a person", permit(t, "org_a", manages), "usr_a", user.ErrNotService},
			{"another sequence", permit(t, "org_a", manages), "usr_robot", moved},
		} {
			t.Run(name+", "+c.name, func(t *testing.T) {
				before := s.Fingerprint()
				eventtest.As(t, do(t.Context(), c.permit, c.id, stale), c.refusal)
				if s.Fingerprint() != before {
					t.Error("something was written")
				}
			})
		}
	}
	// Like a password, they can be set in every state but removed.
	must(t, operations["set a secret"](t.Context(), permit(t, "org_a", manages), "usr_off", event.IfMatch{}))
	must(t, operations["add a key"](t.Context(), permit(t, "org_a", manages), "usr_off", event.IfMatch{}))
	if _, err := user.GetService(t.Context(), s, permit(t, "org_a", manages), "usr_robot"); err != nil {
		t.Error(err)
	}
	_, err := user.GetService(t.Context(), s, permit(t, "org_a", manages), "usr_a")
	eventtest.As(t, err, user.ErrNotService)
	_, err = user.GetService(t.Context(), s,
		permit(t, "org_b", access.Memberships{"org_b": {access.OrgOwner}}), "usr_robot")
	eventtest.As(t, err, user.ErrNotFound)
}

func TestNothingIsLeftOfTheCredentialsOfARemovedServiceUser(t *testing.T) {
	s := withRobot(t)
	p := permit(t, "org_a", manages)
	_, text, err := user.SetSecret(t.Context(), s, p, "usr_robot", event.IfMatch{})
	must(t, err)
	_, _, err = user.AddKey(t.Context(), s, p, "usr_robot", event.IfMatch{}, user.NewKey{PublicKey: newKey(t)})
	must(t, err)
	eventtest.Given(t, s, user.Kind, "usr_robot", "", nil, user.WasRemoved{})
	if u := eventtest.State(t, s, user.Kind, "usr_robot"); u.Data.Service != nil || matches(t, s, text) {
		t.Errorf("left: %+v", u.Data)
	}
}
