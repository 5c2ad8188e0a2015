package app_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// newKey is a key that nobody else has.
func newKey(t *testing.T) user.NewKey {
	t.Helper()
	key, _, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(key)
	must(t, err)
	return user.NewKey{PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

// generate makes a secret for app_active.
func generate(t *testing.T, s *eventtest.Store, keep time.Duration) string {
	t.Helper()
	_, text, err := app.GenerateSecret(t.Context(), s, ownerA, "app_active", event.IfMatch{}, keep)
	must(t, err)
	return text
}

func TestASecretIsShownOnceAndKeptAsItsHash(t *testing.T) {
	s := world(t)
	mark := s.Mark()
	text := generate(t, s, time.Hour) // there is none to keep
	s.Then(t, mark, eventtest.Fact{Object: "app_active", Type: "app.secret_set.v1", Payload: `{"byOwner":true}`})
	if !strings.HasPrefix(text, "sgn_sec_") || s.Stored(t, text) {
		t.Error("it has another form, or is stored in the clear")
	}
	sum := sha256.Sum256([]byte(text))
	row, err := s.Row(t.Context(), app.SecretRow("app_active"))
	must(t, err)
	if !bytes.Equal(row.Value, sum[:]) {
		t.Errorf("stored: %x", row.Value)
	}
	generate(t, s, time.Hour)
	for _, f := range s.Since(t, 0) {
		if strings.Contains(f.Payload+f.Personal, hex.EncodeToString(sum[:])) {
			t.Error("the hash is in the log")
		}
	}
}

func TestAnOldSecretWorksAsLongAsItIsKept(t *testing.T) {
	s := world(t)
	counts := func(text string) bool { return proves(t, s, "app_active", text) }
	first := generate(t, s, 0)
	until := s.Now().Add(time.Hour)
	mark := s.Mark()
	second := generate(t, s, time.Hour)
	s.Then(t, mark, eventtest.Fact{Object: "app_active", Type: "app.secret_set.v1",
		Payload: `{"oldUntil":` + strconv.FormatInt(event.Micros(until), 10) + `,"byOwner":true}`})
	if a := eventtest.State(t, s, app.Kind, "app_active").Data; !a.HasSecret ||
		a.OldSecretUntil != event.Micros(until) {
		t.Errorf("got %+v", a)
	}
	s.Advance(time.Hour - time.Microsecond)
	if !counts(first) || !counts(second) {
		t.Error("one of the two does not count")
	}
	s.Advance(time.Microsecond)
	if counts(first) || !counts(second) {
		t.Error("the old one counts too long, or the new one does not")
	}
	// Only the one right before is kept.
	third := generate(t, s, time.Hour)
	fourth := generate(t, s, time.Hour)
	if counts(first) || counts(second) || !counts(third) || !counts(fourth) {
		t.Error("another one than the last two counts")
	}
	// At once means at once.
	fifth := generate(t, s, 0)
	if counts(third) || counts(fourth) || !counts(fifth) ||
		eventtest.State(t, s, app.Kind, "app_active").Data.OldSecretUntil != 0 {
		t.Error("an old one counts")
	}
	generate(t, s, time.Hour)
	mark = s.Mark()
	_, err := app.RemoveSecret(t.Context(), s, ownerA, "app_active", event.IfMatch{})
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "app_active", Type: "app.secret_removed.v1", Payload: `{}`})
	if row, _ := s.Row(t.Context(), app.SecretRow("app_active")); row != nil || counts(fifth) {
		t.Error("a removed secret is still there")
	}
	if a := eventtest.State(t, s, app.Kind, "app_active").Data; a.HasSecret || a.OldSecretUntil != 0 {
		t.Errorf("got %+v", a)
	}
	_, err = app.RemoveSecret(t.Context(), s, ownerA, "app_active", stale)
	eventtest.As(t, err, app.ErrSecretNotFound)
}

func TestWhenASecretCounts(t *testing.T) {
	now := eventtest.Start
	text, hash := secret.NewToken(secret.Client)
	old, oldHash := secret.NewToken(secret.Client)
	pat, patHash := secret.NewToken(secret.PAT)
	row := func(parts ...[]byte) *event.Row { return &event.Row{Value: slices.Concat(parts...)} }
	until := func(d time.Duration) []byte {
		n := uint64(event.Micros(now.Add(d)))
		var b []byte
		for i := 56; i >= 0; i -= 8 {
			b = append(b, byte(n>>i))
		}
		return b
	}
	active := app.App{Standing: app.Standing{State: app.Active}, Settings: app.Settings{AuthMethod: app.SecretBasic},
		HasSecret: true}
	change := func(f func(*app.App)) *app.App {
		a := active
		f(&a)
		return &a
	}
	both := row(hash, oldHash, until(time.Microsecond))
	for _, c := range []struct {
		name string
		a    *app.App
		row  *event.Row
		text string
		want bool
	}{
		{"it does", &active, row(hash), text, true},
		{"in the body", change(func(a *app.App) { a.AuthMethod = app.SecretPost }), row(hash), text, true},
		{"beside an old one", &active, both, text, true},
		{"the old one", &active, both, old, true},
		{"the old one whose time is over", &active, row(hash, oldHash, until(0)), old, false},
		{"the new one beside it", &active, row(hash, oldHash, until(0)), text, true},
		{"another one", &active, row(hash), old, false},
		{"nothing", &active, row(hash), "", false},
		{"a bit of it", &active, row(hash), text[:len(text)-1], false},
		{"a token of another kind with that hash", &active, row(patHash), pat, false},
		{"no application", nil, row(hash), text, false},
		{"no row", &active, nil, text, false},
		{"an empty row", &active, row(), text, false},
		{"a row of another length", &active, row(hash, oldHash), text, false},
		{"one without a secret", change(func(a *app.App) { a.HasSecret = false }), row(hash), text, false},
		{"an inactive one", change(func(a *app.App) { a.State = app.Inactive }), row(hash), text, false},
		{"a removed one", change(func(a *app.App) { a.State = app.Removed }), row(hash), text, false},
		{"one that proves itself by a key", change(func(a *app.App) { a.AuthMethod = app.PrivateKeyJWT }),
			row(hash), text, false},
		{"one that cannot prove itself", change(func(a *app.App) { a.AuthMethod = app.NoAuth }),
			row(hash), text, false},
	} {
		if got := app.SecretMatches(c.a, c.row, c.text, now); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// proves tells whether a secret proves an application that is in use.
func proves(t *testing.T, s *eventtest.Store, id, text string) bool {
	t.Helper()
	a, err := app.InUse(t.Context(), s, id)
	if errors.Is(err, app.ErrNotFound) {
		return false
	}
	must(t, err)
	stored, err := s.Row(t.Context(), app.SecretRow(id))
	must(t, err)
	return app.SecretMatches(&a.Data, stored, text, s.Now())
}

func TestOnlyActiveApplicationsOfActiveOrganizationsProveThemselves(t *testing.T) {
	s := world(t)
	text, hash := secret.NewToken(secret.Client)
	other, _ := secret.NewToken(secret.Client)
	for _, id := range []string{"app_active", "app_inactive", "app_gone", "app_foreign", "app_off", "app_orphan"} {
		if id != "app_gone" {
			eventtest.Given(t, s, app.Kind, id, "", nil, app.SecretSet{})
		}
		s.GivenRow(event.Row{RowKey: app.SecretRow(id), Value: hash})
	}
	for _, c := range []struct {
		id, text string
		want     bool
	}{
		{"app_active", text, true},
		{"app_foreign", text, true},
		{"app_active", other, false},
		{"app_active", "", false},
		{"app_inactive", text, false},
		{"app_gone", text, false},
		{"app_off", text, false},
		{"app_orphan", text, false},
		{"app_x", text, false},
		{"", text, false},
	} {
		if got := proves(t, s, c.id, c.text); got != c.want {
			t.Errorf("%s: %t", c.id, got)
		}
	}
	eventtest.Given(t, s, org.Kind, "org_a", "", nil, org.Deactivated{})
	if proves(t, s, "app_active", text) {
		t.Error("it proves itself without its organization")
	}
}

func TestKeysAreKeptInOneFormAndInOrder(t *testing.T) {
	s := world(t)
	n := newKey(t)
	form := n.PublicKey
	expires := s.Now().Add(time.Hour + 1500*time.Nanosecond)
	n.PublicKey, n.Expires = "\n"+strings.ReplaceAll(form, "\n", "\r\n"), &expires
	mark := s.Mark()
	_, id, err := app.AddKey(t.Context(), s, ownerA, "app_active", event.IfMatch{}, n)
	must(t, err)
	now := event.Micros(s.Now())
	s.Then(t, mark, eventtest.Fact{
		Object: "app_active",
		Type:   "app.key_added.v1",
		Payload: `{"keyId":"` + id + `","public":` + strconv.Quote(form) +
			`,"created":` + strconv.FormatInt(now, 10) + `,"expires":` + strconv.FormatInt(now+3_600_000_001, 10) + `,"byOwner":true}`,
	})
	_, second, err := app.AddKey(t.Context(), s, ownerA, "app_active", event.IfMatch{}, newKey(t))
	must(t, err)
	ids := func(keys []app.Key) (ids []string) {
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
		return ids
	}
	a := eventtest.State(t, s, app.Kind, "app_active").Data
	if got := ids(a.Keys); !slices.Equal(got, []string{id, second}) || !strings.HasPrefix(id, "pky_") {
		t.Errorf("keys %q", got)
	}
	end := event.Time(now + 3_600_000_001)
	if before, after := ids(a.KeysAt(end.Add(-time.Microsecond))),
		ids(a.KeysAt(end)); !slices.Equal(before, []string{id, second}) || !slices.Equal(after, []string{second}) {
		t.Errorf("before its end %q count, afterwards %q", before, after)
	}
	_, _, err = app.AddKey(t.Context(), s, ownerA, "app_active", stale, user.NewKey{PublicKey: form})
	eventtest.As(t, err, app.ErrKeyExists)
	mark = s.Mark()
	_, err = app.RemoveKey(t.Context(), s, ownerA, "app_active", event.IfMatch{}, id)
	must(t, err)
	s.Then(t, mark, eventtest.Fact{Object: "app_active", Type: "app.key_removed.v1", Payload: `{"keyId":"` + id + `"}`})
	_, err = app.RemoveKey(t.Context(), s, ownerA, "app_active", stale, id)
	eventtest.As(t, err, app.ErrKeyNotFound)
	if got := ids(eventtest.State(t, s, app.Kind, "app_active").Data.Keys); !slices.Equal(got, []string{second}) {
		t.Errorf("keys %q", got)
	}
	for range app.MaxKeys - 1 {
		_, _, err := app.AddKey(t.Context(), s, ownerA, "app_active", event.IfMatch{}, newKey(t))
		must(t, err)
	}
	_, _, err = app.AddKey(t.Context(), s, ownerA, "app_active", stale, newKey(t))
	eventtest.As(t, err, app.ErrTooManyKeys)
	over := s.Now()
	_, keyID, err := app.AddKey(t.Context(), s, ownerA, "app_api", event.IfMatch{},
		user.NewKey{PublicKey: "x", Expires: &over})
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "publicKey", "expirationDate")
	if keyID != "" {
		t.Error("a refusal names a key")
	}
}

func TestKeysThatHaveExpiredMakeRoom(t *testing.T) {
	s := world(t)
	soon := s.Now().Add(time.Hour)
	var expiring []string
	texts := map[string]user.NewKey{}
	for range app.MaxKeys {
		n := newKey(t)
		n.Expires = &soon
		_, id, err := app.AddKey(t.Context(), s, ownerA, "app_active", event.IfMatch{}, n)
		must(t, err)
		expiring, texts[id] = append(expiring, id), n
	}
	s.Advance(time.Hour - time.Microsecond)
	_, _, err := app.AddKey(t.Context(), s, ownerA, "app_active", event.IfMatch{}, newKey(t))
	eventtest.As(t, err, app.ErrTooManyKeys)
	s.Advance(time.Microsecond)
	// One that has expired may come again.
	again := user.NewKey{PublicKey: texts[expiring[0]].PublicKey}
	details, id, err := app.AddKey(t.Context(), s, ownerA, "app_active", event.IfMatch{}, again)
	must(t, err)
	a := eventtest.State(t, s, app.Kind, "app_active")
	if len(a.Data.Keys) != 1 || a.Data.Keys[0].ID != id || details.Sequence != a.Sequence {
		t.Errorf("keys %+v, answered %+v", a.Data.Keys, details)
	}
}

func TestProgramsThatEverybodyCanLookIntoKeepNothing(t *testing.T) {
	s := world(t)
	for _, id := range []string{"app_spa", "app_native"} {
		_, _, err := app.GenerateSecret(t.Context(), s, ownerA, id, stale, 0)
		eventtest.As(t, err, app.ErrKeepsNoSecret)
		_, _, err = app.AddKey(t.Context(), s, ownerA, id, stale, newKey(t))
		eventtest.As(t, err, app.ErrKeepsNoSecret)
	}
	_, text, err := app.GenerateSecret(t.Context(), s, ownerA, "app_api", event.IfMatch{}, 0)
	must(t, err)
	if !proves(t, s, "app_api", text) {
		t.Error("a program that keeps secrets does not prove itself")
	}
}
