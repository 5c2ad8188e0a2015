package registration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

// asked notes what is asked of the store, without the names.
type asked struct {
	event.Store
	mu    sync.Mutex
	asked []string
}

func (a *asked) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, fmt.Sprintf(format, args...))
}

func (a *asked) Record(ctx context.Context, ref event.Ref) (*event.Record, error) {
	a.note("record %s", ref.Kind)
	return a.Store.Record(ctx, ref)
}

func (a *asked) Row(ctx context.Context, key event.RowKey) (*event.Row, error) {
	a.note("row of %s", key.Table)
	return a.Store.Row(ctx, key)
}

func (a *asked) Holder(ctx context.Context, c event.Claim) (string, error) {
	a.note("holder")
	return a.Store.Holder(ctx, c)
}

func (a *asked) Find(ctx context.Context, ways []event.Lookup) ([]string, error) {
	a.note("find in %d ways, by %q", len(ways), ways[0].Column)
	return a.Store.Find(ctx, ways)
}

func (a *asked) Do(ctx context.Context, c event.Command) error {
	a.note("command with %d rows", len(c.Rows))
	return a.Store.Do(ctx, c)
}

// Who starts a registration learns nothing: the answer and what is done before it are the same.
func TestWhetherAnAddressIsKnownOrAllowedShowsNowhere(t *testing.T) {
	w := newWorld(t)
	watched := &asked{Store: w.store}
	w.Sessions.Store = watched
	var want []string
	for _, c := range []struct {
		org, email string
		mails      int
	}{
		{"org_b", "new@mail.test", 1},
		{"org_b", "ann@c.test", 1}, // she has an account
		{"org_c", "someone@c.test", 1},
		{"org_c", "ANN@C.test", 0},     // she has an account, and has got a mail a moment ago
		{"org_c", "new@other.test", 0}, // not in a proven domain
		{"org_c", "new@b.test", 0},     // in the one of another organization
		{"org_c", "new@[192.0.2.1]", 0},
		{"org_c", "new@x.c.test", 0},
	} {
		watched.asked = nil
		mark := w.store.Mark()
		if err := w.Start(t.Context(), start(c.org, c.email)); err != nil {
			t.Errorf("%s %s: %v", c.org, c.email, err)
		}
		if want == nil {
			want = watched.asked
		}
		if !slices.Equal(watched.asked, want) {
			t.Errorf("%s %s: asked for %q, not %q", c.org, c.email, watched.asked, want)
		}
		if rows, err := w.store.RowsOf(t.Context(), event.Deliveries, "", "", 10); err != nil || len(rows) != 1 {
			t.Errorf("%s %s: %d rows, %v", c.org, c.email, len(rows), err)
		}
		must(t, w.SendWaiting(t.Context()))
		if len(w.sent) != c.mails {
			t.Errorf("%s %s: %d mails", c.org, c.email, len(w.sent))
		}
		w.sent = nil
		if rows, err := w.store.RowsOf(t.Context(), event.Deliveries, "", "", 10); err != nil || len(rows) != 0 {
			t.Errorf("%s %s: %d rows stay, %v", c.org, c.email, len(rows), err)
		}
		w.store.Then(t, mark) // nothing happened that anybody is told of
	}
	if len(want) != 2 || want[1] != "command with 0 rows" {
		t.Errorf("asked for %q", want)
	}
	if w.store.Stored(t, "new@mail.test") {
		t.Error("the address can be read in the database")
	}
}

func TestWhereNobodyCanRegisterNothingIsStored(t *testing.T) {
	for _, c := range []struct {
		name  string
		given func(*world)
		start Start
		want  string
	}{
		{"it is off", nil, start("org_d", "a@b.test"), "REGISTRATION_OFF"},
		{"there is no such organization", nil, start("org_none", "a@b.test"), "REGISTRATION_OFF"},
		{"an endless name", nil, start(strings.Repeat("x", 100_000), "a@b.test"), "REGISTRATION_OFF"},
		{"no mail", func(w *world) { w.Mail = nil }, start("org_b", "a@b.test"), "REGISTRATION_NEEDS_MAIL"},
		{"the organization is not active",
			func(w *world) { eventtest.Given(w.t, w.store, org.Kind, "org_b", "", nil, org.Deactivated{}) },
			start("org_b", "a@b.test"), "REGISTRATION_OFF"},
		{"its people come through providers only", func(w *world) {
			w.policy("org_b", func(p *policy.Policy) { p.SignInMethods = []policy.Way{policy.WithProvider} })
		}, start("org_b", "a@b.test"), "REGISTRATION_OFF"},
		{"no address", nil, start("org_b", ""), "INVALID_REQUEST email"},
		{"a name", nil, start("org_b", "ann"), "INVALID_REQUEST email"},
		{"two addresses", nil, start("org_b", "a@b.test, c@d.test"), "INVALID_REQUEST email"},
		{"a new header", nil, start("org_b", "a@b.test\r\nBcc: c@d.test"), "INVALID_REQUEST email"},
		{"an address that is too long", nil, start("org_b", strings.Repeat("a", 250)+"@b.test"),
			"INVALID_REQUEST email"},
		{"a language that is too long", nil, Start{OrgID: "org_b", Email: "a@b.test", Language: "elevenchars"},
			"INVALID_REQUEST preferredLanguage"},
		{"too many from one network", func(w *world) {
			w.Sessions.NetworkLimiter = &ratelimit.NetworkLimiter{PerMinute: 10, Clock: w.store.Now}
			must(w.t, w.Sessions.NetworkLimiter.Take(home, 1))
		}, start("org_b", "a@b.test"), "NETWORK_THROTTLED"},
		{"too many in one organization", func(w *world) { flood(&w.orgs, "org_b", perOrg) }, start("org_b", "a@b.test"),
			"REGISTRATION_THROTTLED"},
		{"too many at once", func(w *world) { flood(&w.node, "", perNode) }, start("org_b", "a@b.test"),
			"REGISTRATION_THROTTLED"},
		{"too many of the organization wait for their mail", func(w *world) {
			w.waiting.Store(&waiting{of: map[string]int{"org_b": maxWaiting / 2}, all: maxWaiting / 2})
		}, start("org_b", "a@b.test"), "REGISTRATION_THROTTLED"},
		{"too many wait for their mail", func(w *world) { w.waiting.Store(&waiting{all: maxWaiting}) },
			start("org_b", "a@b.test"), "REGISTRATION_THROTTLED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.given != nil {
				c.given(w)
			}
			if err := w.Start(t.Context(), c.start); answer(err) != c.want {
				t.Errorf("got %q, want %q", answer(err), c.want)
			}
			if rows, err := w.store.RowsOf(t.Context(), event.Deliveries, "", "", 10); err != nil || len(rows) != 0 {
				t.Errorf("%d rows, %v", len(rows), err)
			}
		})
	}
	w := newWorld(t)
	flood(&w.orgs, "org_c", perOrg)
	w.waiting.Store(&waiting{of: map[string]int{"org_c": maxWaiting / 2}, all: maxWaiting / 2})
	if err := w.Start(t.Context(), start("org_b", "a@b.test")); err != nil {
		t.Errorf("one organization uses up what another one needs: %v", err)
	}
}

// flood takes so many starts, each for somebody else.
func flood(f *ratelimit.FairPool, pool string, starts int) {
	for i := range starts {
		f.Take(pool, fmt.Sprint("flood ", i))
	}
}

// TestAFloodFromManyNetworksLeavesOthersTheirRate: 200 networks start as much as they can, for a quarter of an hour.
// Where they all flood one organization, people who come from elsewhere still register in it. Where they flood so many
// that the node has no more, other organizations register people as before. Who is refused is told when to come again.
func TestAFloodFromManyNetworksLeavesOthersTheirRate(t *testing.T) {
	const networks = 200
	for _, flooded := range []int{1, 20} {
		clock := testkit.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
		r := New(&session.Sessions{Clock: clock.Now}, nil)
		let, refused := 0, 0
		for second := range 15 * 60 {
			for i := range networks {
				switch err := r.admit(fmt.Sprint("flooded ", i%flooded), net4(1000+i)); {
				case err == nil:
					let++
				case errs.KindOf(err) == errs.ResourceExhausted:
					refused++
					if e, ok := errors.AsType[*errs.Error](err); !ok || e.Reason != TooMany ||
						e.RetryAfter < time.Second || e.RetryAfter > time.Minute {
						t.Fatalf("%v: come again in %v", err, e.RetryAfter)
					}
				default:
					t.Fatal(err)
				}
			}
			if second%2 == 0 {
				if err := r.admit("quiet", net4(5000+second%50)); err != nil {
					t.Fatalf("%d are flooded: after %d s an organization that nobody floods registers nobody: %v",
						flooded, second, err)
				}
			}
			if flooded == 1 && second%10 == 0 {
				if err := r.admit("flooded 0", net4(20_000+second%300)); err != nil {
					t.Fatalf("after %d s nobody from elsewhere registers in the flooded organization: %v", second, err)
				}
			}
			clock.Advance(time.Second)
		}
		if most := min(perNode, flooded*perOrg) * 17; let > most || let < most/2 || refused < networks*60 {
			t.Errorf("%d are flooded: %d were let through and %d refused", flooded, let, refused)
		}
		// When it is over, all have their whole rate.
		clock.Advance(time.Hour)
		for i := range perOrg {
			if err := r.admit("flooded 0", net4(i)); err != nil {
				t.Fatalf("after %d: %v", i, err)
			}
		}
	}
}

func TestAMailboxGetsAFewMailsADayHoweverItIsWritten(t *testing.T) {
	w := newWorld(t)
	tries := []Start{start("org_b", "new@c.test"), start("org_c", "NEW@c.test"), start("org_b", "new+1@c.test"),
		start("org_c", "new+2@C.test")}
	for round := range 40 {
		for _, s := range tries {
			must(t, w.Start(t.Context(), s))
			must(t, w.SendWaiting(t.Context()))
		}
		w.store.Advance(2 * time.Minute)
		if most := min(round+1, 5); len(w.sent) != most {
			t.Fatalf("%d mails after %d rounds", len(w.sent), round+1)
		}
	}
	must(t, w.Start(t.Context(), start("org_b", "other@c.test")))
	must(t, w.SendWaiting(t.Context()))
	if len(w.sent) != 6 {
		t.Error("another mailbox gets none")
	}
	w.store.Advance(24 * time.Hour)
	must(t, w.Start(t.Context(), tries[0]))
	must(t, w.SendWaiting(t.Context()))
	if len(w.sent) != 7 {
		t.Error("no mail on the next day")
	}
}

func TestAMailIsSentAgainUntilItGoesOutAndCountsOnce(t *testing.T) {
	w := newWorld(t)
	must(t, w.Start(t.Context(), start("org_b", "new@mail.test")))
	w.fail = errors.New("no line")
	for range 8 {
		if err := w.SendWaiting(t.Context()); err == nil {
			t.Error("nobody is told that mails cannot be sent")
		}
		if err := w.SendWaiting(t.Context()); err != nil {
			t.Errorf("two nodes are at it: %v", err)
		}
		w.store.Advance(patience)
	}
	w.fail = nil
	must(t, w.SendWaiting(t.Context()))
	m := w.one(t)
	if m.Address != "new@mail.test" || m.Language != "de" || m.Organization != "org_b" {
		t.Errorf("got %+v", m)
	}
	must(t, w.SendWaiting(t.Context()))
	if len(w.sent) > 0 {
		t.Error("it was sent twice")
	}
	if _, err := w.Finish(t.Context(), finish(m.link)); err != nil {
		t.Error(err)
	}
	// Nobody waits for a mail longer than an hour, and none goes to a mailbox that is not there.
	for _, c := range []struct {
		fail  error
		after time.Duration
	}{{errors.New("no line"), life}, {gone, 0}} {
		w := newWorld(t)
		must(t, w.Start(t.Context(), start("org_b", "new@mail.test")))
		w.fail = c.fail
		_ = w.SendWaiting(t.Context())
		w.fail = nil
		w.store.Advance(c.after)
		must(t, w.SendWaiting(t.Context()))
		if rows, err := w.store.RowsOf(t.Context(), event.Deliveries, "", "", 10); err != nil ||
			len(rows)+len(w.sent) != 0 {
			t.Errorf("%v: %d rows, %d mails, %v", c.fail, len(rows), len(w.sent), err)
		}
	}
}

func TestWhoHasTheMailBecomesAUserOnce(t *testing.T) {
	w := newWorld(t)
	link := w.link("org_b", "New@mail.test")
	for range 3 { // looking changes nothing
		found, err := w.Find(t.Context(), link)
		must(t, err)
		if found.Email != "New@mail.test" || found.Return != "req_app" || found.Org.ID != "org_b" {
			t.Errorf("got %+v", found)
		}
	}
	in, err := w.Finish(t.Context(), finish(link))
	must(t, err)
	u := eventtest.State(t, w.store, user.Kind, in.UserID)
	if e := u.Data.Human.Email; u.Org != "org_b" || u.Data.UserName != "New@mail.test" || !e.Verified ||
		e.Verification.By != user.VerifiedByOwner || u.Data.Human.Profile.PreferredLanguage != "de" ||
		u.Data.Human.Terms != nil {
		t.Errorf("got %+v %+v", u.Data, u.Data.Human)
	}
	if _, err := w.Sessions.Session(t.Context(), in.Token); err != nil {
		t.Errorf("the session: %v", err)
	}
	if _, err := w.Sessions.SignIn(t.Context(),
		session.Attempt{LoginName: "new@mail.test", Password: right, OrgID: "org_b", Peer: home}); err != nil {
		t.Errorf("the next sign-in: %v", err)
	}
	other := finish(link)
	other.UserName = "somebody else"
	for name, f := range map[string]Finish{"again": finish(link), "under another name": other} {
		if _, err := w.Finish(t.Context(), f); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.Find(t.Context(), link); !errors.Is(err, ErrNotFound) {
		t.Errorf("the link: %v", err)
	}
	w.store.Advance(time.Hour)
	must(t, w.Start(t.Context(), start("org_b", "new@mail.test")))
	must(t, w.SendWaiting(t.Context()))
	if m := w.one(t); m.link != "" {
		t.Error("somebody who has an account gets another one")
	}
}

func TestWithAPasskey(t *testing.T) {
	w := newWorld(t)
	link, another := w.link("org_b", "new@mail.test"), w.link("org_b", "other@mail.test")
	device := &factortest.Authenticator{Origin: externalURL}
	options, err := w.StartPasskey(t.Context(), home, link)
	must(t, err)
	credential, err := device.Create(options)
	must(t, err)
	f := finish(another)
	f.Password, f.Credential = "", credential
	if _, err := w.Finish(t.Context(), f); answer(err) != "INVALID_REQUEST credential" {
		t.Errorf("a passkey that was made for another registration: %v", err)
	}
	f.Link = link
	in, err := w.Finish(t.Context(), f)
	must(t, err)
	if u := eventtest.State(t, w.store, user.Kind, in.UserID); len(u.Data.Human.Factors) != 1 ||
		u.Data.Password.Version != 0 || in.SecondFactorRequired {
		t.Errorf("got %+v", u.Data)
	}
	if _, err := w.StartPasskey(t.Context(), home, link); !errors.Is(err, ErrNotFound) {
		t.Errorf("after it: %v", err)
	}
}

// What an organization wants is judged when the mail goes out, when the link is opened, and in the command that makes
// the user.
func TestWhatIsJudgedAgain(t *testing.T) {
	altered := func(w *world, f *Finish) { f.Link = strings.Replace(f.Link, "sgn_reg_", "sgn_cod_", 1) }
	asTerms := func(uri string) func(*world, *Finish) {
		return func(w *world, _ *Finish) { w.policy("org_c", func(p *policy.Policy) { p.TermsURI = uri }) }
	}
	for _, c := range []struct {
		name   string
		change func(*world, *Finish)
		want   string
	}{
		{"nothing has changed", nil, "ok"},
		{"it is off", func(w *world, _ *Finish) {
			w.policy("org_c", func(p *policy.Policy) { p.Registration = policy.ToNobody })
		}, "REGISTRATION_OFF"},
		{"it is open to all", func(w *world, _ *Finish) {
			w.policy("org_c", func(p *policy.Policy) { p.Registration = policy.ToAll })
		}, "ok"},
		{"the domain is gone", func(w *world, _ *Finish) {
			eventtest.Given(w.t, w.store, org.Kind, "org_c", "", nil, org.DomainRemoved{Domain: "c.test"})
		}, "REGISTRATION_OFF"},
		{"the organization is not active", func(w *world, _ *Finish) {
			eventtest.Given(w.t, w.store, org.Kind, "org_c", "", nil, org.Deactivated{})
		}, "REGISTRATION_OFF"},
		{"no passwords", func(w *world, _ *Finish) {
			w.policy("org_c", func(p *policy.Policy) { p.SignInMethods = []policy.Way{policy.WithPasskey} })
		}, "SIGN_IN_METHOD_NOT_ALLOWED"},
		{"terms that were not accepted", asTerms(terms), "INVALID_REQUEST acceptedTermsUri"},
		{"terms that were accepted", func(w *world, f *Finish) { asTerms(terms)(w, f); f.AcceptedTerms = terms }, "ok"},
		{"others than were accepted", func(w *world, f *Finish) { asTerms(terms+"/2")(w, f); f.AcceptedTerms = terms },
			"INVALID_REQUEST acceptedTermsUri"},
		{"it took too long", func(w *world, _ *Finish) { w.store.Advance(life) }, "REGISTRATION_NOT_FOUND"},
		{"just in time", func(w *world, _ *Finish) { w.store.Advance(life - time.Second) }, "ok"},
		{"a newer link", func(w *world, _ *Finish) { w.store.Advance(time.Minute); w.link("org_c", "NEW@c.test") },
			"REGISTRATION_NOT_FOUND"},
		{"somebody else has the address now", func(w *world, _ *Finish) {
			eventtest.Given(w.t, w.store, user.Kind, "usr_new", "org_c", []event.Claim{user.NameClaim("org_c", "x")},
				user.HumanAdded{
					EmailVerified: true,
					Personal: user.HumanFacts{UserName: "x", UserNameKey: "x", Email: "new@c.test",
						EmailKey: "new@c.test"},
				})
		}, "REGISTRATION_NOT_FOUND"},
		{"no link", func(_ *world, f *Finish) { f.Link = "" }, "REGISTRATION_NOT_FOUND"},
		{"a token of another kind", altered, "REGISTRATION_NOT_FOUND"},
		{"a part of it", func(_ *world, f *Finish) { f.Link, _, _ = strings.Cut(f.Link, ".") },
			"REGISTRATION_NOT_FOUND"},
		{"another token", func(_ *world, f *Finish) {
			token, _ := secret.NewToken(secret.Registration)
			f.Link = token + f.Link[strings.Index(f.Link, "."):]
		}, "REGISTRATION_NOT_FOUND"},
		{"another place", func(w *world, f *Finish) {
			f.Link = f.Link[:strings.Index(f.Link, ".")] + linkOf("", w.registrationID("org_b", "new@c.test"))
		}, "REGISTRATION_NOT_FOUND"},
		{"neither password nor passkey", func(_ *world, f *Finish) { f.Password = "" }, "INVALID_REQUEST password"},
		{"both", func(_ *world, f *Finish) { f.Credential = "{}" }, "INVALID_REQUEST password"},
		{"a short password", func(_ *world, f *Finish) { f.Password = "short" }, "INVALID_REQUEST password"},
		{"a common password", func(_ *world, f *Finish) { f.Password = "Password123!" }, "INVALID_REQUEST password"},
		{"no name", func(_ *world, f *Finish) { f.LastName = "" }, "INVALID_REQUEST profile.lastName"},
		{"the address of somebody else as a name", func(_ *world, f *Finish) { f.UserName = "boss＠c.test" },
			"INVALID_REQUEST userName"},
		{"a name that is taken", func(_ *world, f *Finish) { f.UserName = "Ann" }, "USER_NAME_TAKEN"},
		{"a passkey that is none", func(_ *world, f *Finish) { f.Password, f.Credential = "", "{}" },
			"INVALID_REQUEST credential"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			f := finish(w.link("org_c", "new@c.test"))
			if c.change != nil {
				c.change(w, &f)
			}
			mark := w.store.Mark()
			in, err := w.Finish(t.Context(), f)
			if answer(err) != c.want {
				t.Fatalf("got %q, want %q: %v", answer(err), c.want, err)
			}
			if c.want != "ok" {
				w.store.Then(t, mark)
				return
			}
			u := eventtest.State(t, w.store, user.Kind, in.UserID)
			if accepted := u.Data.Human.Terms; f.AcceptedTerms != "" &&
				(accepted == nil || accepted.URI != terms || accepted.At == 0) ||
				f.AcceptedTerms == "" && accepted != nil {
				t.Errorf("accepted: %+v", accepted)
			}
		})
	}
}

// between runs something before a command, as another node could.
type between struct {
	event.Store
	do func()
}

func (b *between) Do(ctx context.Context, c event.Command) error {
	if b.do != nil && len(c.Create) > 0 {
		do := b.do
		b.do = nil
		do()
	}
	return b.Store.Do(ctx, c)
}

func TestTheCommandItselfJudges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"switched off": {func(w *world) {
			w.policy("org_c", func(p *policy.Policy) { p.Registration = policy.ToNobody })
		}, "REGISTRATION_OFF"},
		"the domain is gone": {func(w *world) {
			eventtest.Given(w.t, w.store, org.Kind, "org_c", "", nil, org.DomainRemoved{Domain: "c.test"})
		}, "REGISTRATION_OFF"},
		"deactivated": {func(w *world) {
			eventtest.Given(w.t, w.store, org.Kind, "org_c", "", nil, org.Deactivated{})
		}, "REGISTRATION_OFF"},
		"other terms": {func(w *world) { w.policy("org_c", func(p *policy.Policy) { p.TermsURI = terms }) },
			"INVALID_REQUEST acceptedTermsUri"},
		"the link was replaced": {func(w *world) { w.store.Advance(time.Minute); w.link("org_c", "new@c.test") },
			"REGISTRATION_NOT_FOUND"},
		"it has expired": {func(w *world) { w.store.Advance(life) }, "REGISTRATION_NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			f := finish(w.link("org_c", "new@c.test"))
			w.Sessions.Store = &between{Store: w.store, do: func() { c.change(w) }}
			if _, err := w.Finish(t.Context(), f); answer(err) != c.want {
				t.Errorf("got %q, want %q", answer(err), c.want)
			}
		})
	}
}

func TestNobodyHashesWithoutALink(t *testing.T) {
	w := newWorld(t)
	w.Sessions.Hasher = nil // whoever comes as far panics
	f := finish(w.link("org_b", "new@mail.test"))
	for _, link := range []string{"", "x", f.Link[:len(f.Link)-1], "sgn_reg_." + strings.Repeat("A", 22)} {
		f.Link = link
		if _, err := w.Finish(t.Context(), f); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", link, err)
		}
	}
}

func net4(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}
