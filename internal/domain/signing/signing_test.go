package signing

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// counted counts what is read, and can be away.
type counted struct {
	*eventtest.Store
	reads atomic.Int64
	away  atomic.Bool
}

var errAway = errors.New("the database is away")

func (c *counted) Record(ctx context.Context, ref event.Ref) (*event.Record, error) {
	c.reads.Add(1)
	if c.away.Load() {
		return nil, errAway
	}
	return c.Store.Record(ctx, ref)
}

func (c *counted) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	c.reads.Add(1)
	return c.Store.Row(ctx, key)
}

// bench is a node's keys over a store in memory.
type bench struct {
	*Keys
	t     *testing.T
	store *counted
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s := &counted{Store: eventtest.New(t, Kind)}
	return &bench{Keys: New(s, s.Master, s.Now), t: t, store: s}
}

// node is another node over the same store.
func (b *bench) node() *bench {
	return &bench{Keys: New(b.store, b.store.Master, b.store.Now), t: b.t, store: b.store}
}

type claims struct {
	Subject string `json:"sub"`
}

const typ = "JWT"

// sign makes a token and tells which key signed it.
func (b *bench) sign(alg Algorithm) (token, keyID string) {
	b.t.Helper()
	token, err := b.Sign(b.t.Context(), string(alg), typ, claims{"usr_a"})
	if err != nil {
		b.t.Fatal(err)
	}
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{alg})
	if err != nil {
		b.t.Fatal(err)
	}
	return token, parsed.Signatures[0].Protected.KeyID
}

func (b *bench) signer(alg Algorithm) string {
	b.t.Helper()
	_, id := b.sign(alg)
	return id
}

// counts tells whether a token is accepted, by ourselves and by everybody who has the published set.
func (b *bench) counts(token string) bool {
	b.t.Helper()
	var got claims
	err := b.Verify(b.t.Context(), typ, token, &got)
	if err != nil && !errors.Is(err, ErrNotOurs) {
		b.t.Fatal(err)
	}
	if err == nil && got.Subject != "usr_a" {
		b.t.Errorf("the claims became %+v", got)
	}
	parsed, parseErr := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{ES256, RS256})
	if parseErr != nil {
		b.t.Fatal(parseErr)
	}
	set, _, setErr := b.KeySet(b.t.Context())
	if setErr != nil {
		b.t.Fatal(setErr)
	}
	outside := false
	for _, k := range set.Key(parsed.Signatures[0].Protected.KeyID) {
		_, verifyErr := parsed.Verify(k.Key)
		outside = outside || verifyErr == nil && k.IsPublic() && k.Use == "sig" &&
			k.Algorithm == parsed.Signatures[0].Protected.Algorithm
	}
	if outside != (err == nil) {
		b.t.Errorf("here it counts: %t; by the published keys: %t", err == nil, outside)
	}
	return err == nil
}

func (b *bench) published() (ids []string) {
	b.t.Helper()
	set, age, err := b.KeySet(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if age <= 0 || age > Lead/4 {
		b.t.Errorf("the set may be kept for %v", age)
	}
	for _, k := range set.Keys {
		ids = append(ids, k.KeyID)
	}
	return ids
}

func (b *bench) tend() {
	b.t.Helper()
	if err := b.Tend(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) hasPrivate(id string) bool {
	b.t.Helper()
	row, err := b.store.Store.Row(b.t.Context(), PrivateRow(id))
	if err != nil {
		b.t.Fatal(err)
	}
	return row != nil
}

// iam is a permit in the installation.
func iam(t *testing.T, p access.Permission) access.Permit {
	t.Helper()
	permit, err := (&access.Caller{UserID: "usr_root",
		Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}).In(access.Installation, p)
	if err != nil {
		t.Fatal(err)
	}
	return permit
}

func (b *bench) rotate(urgent bool) error {
	_, err := b.Rotate(b.t.Context(), iam(b.t, access.SigningWrite), event.IfMatch{}, urgent)
	return err
}

func TestTheFirstKeySignsAtOnce(t *testing.T) {
	t.Run("made by the worker", func(t *testing.T) {
		b := newBench(t)
		b.tend()
		mark := b.store.Mark()
		b.tend()
		b.store.Then(t, mark) // it does nothing more
		if ids := b.published(); len(ids) != 1 || b.signer(ES256) != ids[0] {
			t.Errorf("published %q", ids)
		}
	})
	t.Run("made by who asks for the set", func(t *testing.T) {
		b := newBench(t)
		if ids := b.published(); len(ids) != 1 || b.signer(ES256) != ids[0] {
			t.Errorf("published %q", ids)
		}
	})
	t.Run("made by who signs, also for RSA", func(t *testing.T) {
		b := newBench(t)
		for _, alg := range []Algorithm{ES256, RS256} {
			if token, _ := b.sign(alg); !b.counts(token) {
				t.Errorf("a token by %s does not count", alg)
			}
		}
		if ids := b.published(); len(ids) != 2 {
			t.Errorf("published %q", ids)
		}
		mark := b.store.Mark()
		b.sign(RS256)
		b.store.Then(t, mark)
	})
	t.Run("but not for an algorithm that there is not", func(t *testing.T) {
		b := newBench(t)
		for _, alg := range []string{"", "none", "HS256", "PS256", "es256"} {
			if token, err := b.Sign(t.Context(), alg, typ, claims{}); err == nil {
				t.Errorf("%q signed %s", alg, token)
			}
		}
	})
}

func TestTheLifeOfAKey(t *testing.T) {
	for _, alg := range []Algorithm{ES256, RS256} {
		t.Run(string(alg), func(t *testing.T) {
			b := newBench(t)
			early, first := b.sign(alg)
			b.store.Advance(Period - time.Second)
			b.tend()
			if got := b.published(); slices.Contains(got, first) == false || b.newestOf(alg) != first {
				t.Fatalf("before its time there is another one: %q", got)
			}
			b.store.Advance(time.Second)
			b.tend()
			b.store.Advance(settle)
			second := b.newestOf(alg)
			if second == first {
				t.Fatal("there is no new key")
			}
			if got := b.published(); !slices.Contains(got, first) || !slices.Contains(got, second) {
				t.Errorf("published %q", got)
			}
			b.store.Advance(Lead - settle - time.Second)
			late, by := b.sign(alg)
			if by != first {
				t.Error("the new one signs before others had the time to learn of it")
			}
			b.store.Advance(time.Second)
			if by := b.signer(alg); by != second {
				t.Errorf("signed by %s", by)
			}
			b.tend()
			b.store.Advance(Keep - time.Second)
			b.tend()
			if !b.counts(late) || !b.counts(early) {
				t.Error("what was signed before does not count as long as it lives")
			}
			b.store.Advance(time.Second)
			if b.counts(late) || slices.Contains(b.published(), first) {
				t.Error("its time is over, and it still counts because nobody has cleaned up")
			}
			if !b.hasPrivate(first) {
				t.Error("something else has destroyed it")
			}
			b.tend()
			if b.hasPrivate(first) || !b.hasPrivate(second) {
				t.Error("the private half of the old one is still there, or that of the new one is not")
			}
			for _, k := range eventtest.State(t, b.store.Store, Kind, ID).Data.Keys {
				if k.ID == first {
					t.Error("it is still in the list")
				}
			}
			if token, by := b.sign(alg); by != second || !b.counts(token) {
				t.Error("the new one does not go on")
			}
		})
	}
}

func (b *bench) newestOf(alg Algorithm) string {
	b.t.Helper()
	s := eventtest.State(b.t, b.store.Store, Kind, ID).Data
	return s.newest(alg).ID
}

func TestKeepIsLongerThanAnythingThatIsSignedLives(t *testing.T) {
	if Keep < LongestToken+time.Hour || Lead < 4*setAge || settle < 2*rereadAfter {
		t.Error("the times do not fit together")
	}
}

func TestRotatingByCommand(t *testing.T) {
	b := newBench(t)
	token, first := b.sign(ES256)
	b.sign(RS256)
	if err := b.rotate(false); err != nil {
		t.Fatal(err)
	}
	if got := b.published(); len(got) != 4 {
		t.Errorf("published %q", got)
	}
	if b.signer(ES256) != first || !b.counts(token) {
		t.Error("the new one signs at once, or what was signed before does not count")
	}
	mark := b.store.Mark()
	if err := b.rotate(false); !errors.Is(err, ErrRotating) {
		t.Errorf("again: %v", err)
	}
	b.store.Then(t, mark)
	b.store.Advance(Lead)
	if b.signer(ES256) == first {
		t.Error("the old one still signs")
	}
	if err := b.rotate(false); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func TestRotatingBecauseAKeyHasLeaked(t *testing.T) {
	b := newBench(t)
	other := b.node()
	token, first := b.sign(ES256)
	if !other.counts(token) {
		t.Fatal("it does not count on the other node")
	}
	if err := b.rotate(false); err != nil { // one is on its way already, and may have leaked as well
		t.Fatal(err)
	}
	waiting := b.newestOf(ES256)
	if err := b.rotate(true); err != nil {
		t.Fatal(err)
	}
	fresh := b.newestOf(ES256)
	if b.signer(ES256) != first || !b.counts(token) {
		t.Error("before all nodes know of the new key the old one has to do")
	}
	if err := b.rotate(true); !errors.Is(err, ErrRotating) {
		t.Errorf("again: %v", err)
	}
	b.store.Advance(settle)
	for name, node := range map[string]*bench{"this node": b, "the other node": other} {
		if node.signer(ES256) != fresh || node.counts(token) || !slices.Equal(node.published(), []string{fresh}) {
			t.Errorf("%s: signed by %s, published %q", name, node.signer(ES256), node.published())
		}
	}
	b.tend()
	if b.hasPrivate(first) || b.hasPrivate(waiting) || !b.hasPrivate(fresh) {
		t.Error("the private halves are not what they should be")
	}
	if err := b.rotate(true); err != nil {
		t.Errorf("a second time: %v", err)
	}
	for range 50 {
		b.store.Advance(settle)
		if err := b.rotate(true); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(eventtest.State(t, b.store.Store, Kind, ID).Data.Keys); n > 3 {
		t.Errorf("%d keys have piled up", n)
	}
}

var mismatch = errs.New(errs.Aborted, event.SequenceMismatch, "")

func TestWhoMayRotateAndLook(t *testing.T) {
	b := newBench(t)
	b.tend()
	org, err := (&access.Caller{UserID: "usr_a", OrgID: "org_a",
		Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}).In("org_a", access.SigningWrite)
	if err != nil {
		t.Fatal(err)
	}
	for name, permit := range map[string]access.Permit{"nobody": {}, "a permit for an organization": org} {
		if _, err := b.Rotate(t.Context(), permit, event.IfMatch{}, false); !errors.Is(err, access.ErrDenied) {
			t.Errorf("%s rotates: %v", name, err)
		}
		if keys, _, err := b.List(t.Context(), permit); !errors.Is(err, access.ErrDenied) || keys != nil {
			t.Errorf("%s looks: %v", name, err)
		}
	}
	keys, d, err := b.List(t.Context(), iam(t, access.SigningRead))
	if err != nil || len(keys) != 1 || d.Sequence != 1 || d.Org != access.Installation {
		t.Errorf("got %v, %+v, %v", keys, d, err)
	}
	if _, err := b.Rotate(t.Context(), iam(t, access.SigningWrite), event.IfMatch{Set: true, Sequence: 7},
		false); !errors.Is(err, mismatch) {
		t.Errorf("another sequence: %v", err)
	}
	if d, err = b.Rotate(t.Context(), iam(t, access.SigningWrite), event.IfMatch{Set: true, Sequence: 1},
		false); err != nil || d.Sequence != 2 {
		t.Errorf("got %+v, %v", d, err)
	}
	empty := newBench(t)
	if _, err := empty.Rotate(t.Context(), iam(t, access.SigningWrite), event.IfMatch{Set: true, Sequence: 7},
		false); !errors.Is(err, mismatch) {
		t.Errorf("where there is nothing yet: %v", err)
	}
	if _, err := empty.RotateByOperator(t.Context(), true); err != nil || len(empty.published()) != 1 {
		t.Errorf("the operator, where there is nothing yet: %v", err)
	}
}

func TestTokensThatAreNotOurs(t *testing.T) {
	b, stranger := newBench(t), newBench(t)
	token, id := b.sign(ES256)
	b.sign(RS256)
	set, _, err := b.KeySet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	encode := base64.RawURLEncoding.EncodeToString
	header := func(alg string) string { return encode(fmt.Appendf(nil, `{"alg":%q,"kid":%q,"typ":"JWT"}`, alg, id)) }
	with := func(alg jose.SignatureAlgorithm, key any) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}},
			(&jose.SignerOptions{}).WithType(typ))
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign([]byte(`{"sub":"usr_a"}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := signed.CompactSerialize()
		return text
	}
	public, err := json.Marshal(set.Key(id)[0])
	if err != nil {
		t.Fatal(err)
	}
	theirs, _ := stranger.sign(ES256)
	access, err := b.Sign(t.Context(), string(ES256), "at+jwt", claims{"usr_a"})
	if err != nil {
		t.Fatal(err)
	}
	rsaID := b.signer(RS256)
	damaged := []byte(parts[2])
	damaged[10] ^= 1
	for name, text := range map[string]string{
		"nothing":                     "",
		"no token":                    "a.b.c",
		"somebody else's":             theirs,
		"meant for something else":    access,
		"without a signature":         header("none") + "." + parts[1] + ".",
		"with none in capitals":       header("NONE") + "." + parts[1] + ".",
		"by HMAC with the public key": with(jose.HS256, public),
		"of another algorithm":        header("RS256") + "." + parts[1] + "." + parts[2],
		"with other claims":           parts[0] + "." + encode([]byte(`{"sub":"usr_b"}`)) + "." + parts[2],
		"with a damaged signature":    parts[0] + "." + parts[1] + "." + string(damaged),
		"cut off":                     token[:len(token)-4],
		"with something behind it":    token + ".x",
		"as JSON": `{"payload":"` + parts[1] + `","protected":"` + parts[0] +
			`","signature":"` + parts[2] + `"}`,
		"too long": mustSign(t, b, claims{strings.Repeat("a", maxToken)}),
		"by a key of another algorithm": strings.Replace(with(jose.HS256, public), header("HS256"),
			encode(fmt.Appendf(nil, `{"alg":"ES256","kid":%q,"typ":"JWT"}`, rsaID)), 1),
		"with claims of another form": mustSign(t, b, []string{"usr_a"}),
		"by a key that nobody knows here": strings.Replace(token, parts[0],
			encode([]byte(`{"alg":"ES256","kid":"x","typ":"JWT"}`)), 1),
		"by no key": strings.Replace(token, parts[0],
			encode([]byte(`{"alg":"ES256","typ":"JWT"}`)), 1),
	} {
		t.Run(name, func(t *testing.T) {
			var got claims
			if err := b.Verify(t.Context(), typ, text, &got); !errors.Is(err, ErrNotOurs) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if !b.counts(token) {
		t.Error("the good one does not count either")
	}
}

func mustSign(t *testing.T, b *bench, claims any) string {
	t.Helper()
	token, err := b.Sign(t.Context(), string(ES256), typ, claims)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestASignatureCostsNoRead(t *testing.T) {
	b := newBench(t)
	token, _ := b.sign(ES256)
	before := b.store.reads.Load()
	for range 100 {
		b.sign(ES256)
		b.counts(token)
	}
	if n := b.store.reads.Load() - before; n != 0 {
		t.Errorf("%d reads for 100 signatures", n)
	}
	b.store.Advance(rereadAfter)
	for range 100 {
		b.sign(ES256)
	}
	if n := b.store.reads.Load() - before; n != 1 {
		t.Errorf("%d reads after a while: the list is read once, and a key that is known is not", n)
	}
	b.store.Advance(askAfter)
	before = b.store.reads.Load()
	stranger, _ := newBench(t).sign(ES256)
	for range 100 {
		if b.Verify(t.Context(), typ, stranger, &claims{}) == nil {
			t.Fatal("it counts")
		}
	}
	if n := b.store.reads.Load() - before; n != 1 {
		t.Errorf("%d reads for keys that nobody knows", n)
	}
}

func TestAnotherNodesKeyIsFoundAtOnce(t *testing.T) {
	b := newBench(t)
	b.tend()
	other := b.node()
	other.published()
	b.store.Advance(askAfter)
	token, _ := b.sign(RS256)
	if !other.counts(token) {
		t.Error("it is not")
	}
}

func TestWhatIsKnownIsGoodForAMomentWithoutTheDatabase(t *testing.T) {
	b := newBench(t)
	token, _ := b.sign(ES256)
	b.store.away.Store(true)
	b.store.Advance(settle - time.Millisecond)
	if b.signer(ES256) == "" || !b.counts(token) {
		t.Error("it is not")
	}
	b.store.Advance(time.Millisecond)
	if _, err := b.Sign(t.Context(), string(ES256), typ, claims{}); !errors.Is(err, errAway) {
		t.Errorf("signed by what may be withdrawn since: %v", err)
	}
	if err := b.Verify(t.Context(), typ, token, &claims{}); !errors.Is(err, errAway) {
		t.Errorf("verified by what may be withdrawn since: %v", err)
	}
	b.store.away.Store(false)
	b.sign(ES256)
}

func TestAPrivateHalfOpensOnlyForItsOwnKey(t *testing.T) {
	b := newBench(t)
	first, second := b.signer(ES256), b.signer(RS256)
	row, err := b.store.Store.Row(t.Context(), PrivateRow(second))
	if err != nil {
		t.Fatal(err)
	}
	b.store.GivenRow(event.Row{RowKey: PrivateRow(first), Value: row.Value})
	if _, err := b.node().Sign(t.Context(), string(ES256), typ, claims{}); err == nil {
		t.Error("it signs")
	}
	b.store.GivenRow(event.Row{RowKey: PrivateRow(first), Value: row.Value, Expires: 1}) // gone
	if _, err := b.node().Sign(t.Context(), string(ES256), typ, claims{}); !errors.Is(err, ErrNoKey) {
		t.Errorf("without a private half: %v", err)
	}
}

func BenchmarkSign(b *testing.B) {
	s := eventtest.New(b, Kind)
	keys := New(s, s.Master, s.Now)
	for _, alg := range []Algorithm{ES256, RS256} {
		b.Run(string(alg), func(b *testing.B) {
			for b.Loop() {
				if _, err := keys.Sign(b.Context(), string(alg), typ, claims{"usr_a"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
