package lifecycle_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/domain/member/membertest"
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/lifecycle"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testdb"
)

// human is a person whose values all hold a word that nothing else does.
func human(word string) user.NewHuman {
	return user.NewHuman{UserName: word, Email: word + "@mail.example", EmailVerified: true, Phone: "+41-44-555-01-23",
		Profile: user.Profile{FirstName: "First " + word, LastName: "Last " + word, NickName: "Nick " + word,
			DisplayName: "Display " + word, PreferredLanguage: "de", Gender: user.Diverse}}
}

// addHuman puts a person into an organization, with sign-ins and consents beside, a session, a token and secrets.
func addHuman(t *testing.T, s event.Store, id, in, word string) {
	t.Helper()
	n := human(word)
	must(t, s.Do(t.Context(), event.Command{Origin: event.Origin{Actor: event.System},
		Write:  []event.Ref{user.Kind.Ref(id), session.Companion(id), oauth.Companion(id)},
		Claims: []event.Claim{user.NameClaim(in, strings.ToLower(word))},
		Decide: func(tx *event.Tx) error {
			u, err := user.AddHuman(tx, id, in, &n)
			if err != nil {
				return err
			}
			for _, row := range user.SecretRows(id) {
				tx.PutRow(event.Row{RowKey: row, Value: []byte("secret of " + word)})
			}
			for _, kind := range []secret.TokenKind{secret.Session, secret.PAT} {
				name := string(kind) + id
				tx.PutToken(event.Token{ID: name, Hash: hashOf(name), Kind: string(kind), Name: "Telephone of " + word,
					UserID: id, Expires: tx.Now() + 1e12})
			}
			source := session.RequestSource{Address: "192.0.2.1", UserAgent: "Browser of " + word}
			_, err = session.Kind.CreateBeside(tx, session.IDFor(id), user.Kind.Ref(id),
				session.Succeeded{SessionID: "ses_1", Personal: source}, session.Failed{Count: 1, Personal: source})
			_, also := oauth.Kind.CreateBeside(tx, oauth.IDFor(id), user.Kind.Ref(id),
				oauth.Given{AppID: "app_1", Scopes: []string{"openid"}, Asked: true, At: 1})
			return errors.Join(err, also,
				u.Append(user.TOTPAdded{FactorID: "fac_1", Created: 1,
					Personal: user.FactorFacts{Name: "App of " + word}},
					user.MetadataSet{Personal: metadata.Change{Set: map[string]string{"note": "Note about " + word}}}))
		}}))
}

// history gives the events of a person and of what stands beside, with their chains checked.
func history(t *testing.T, r event.Reader, id string) map[string][]event.Event {
	t.Helper()
	all := map[string][]event.Event{id: nil, session.IDFor(id): nil, oauth.IDFor(id): nil}
	for after := int64(0); ; {
		events, err := r.Events(t.Context(), after, 1000)
		must(t, err)
		if len(events) == 0 {
			return all
		}
		for _, e := range events {
			after = e.Position
			chain, mine := all[e.ObjectID]
			if !mine {
				continue
			}
			if n := len(chain); e.Sequence != uint64(n+1) || n > 0 && !bytes.Equal(e.PrevHash, chain[n-1].Hash()) {
				t.Errorf("event %s does not follow the one before", journal.ID(&e))
			}
			all[e.ObjectID] = append(chain, e)
		}
	}
}

// erased demands that nothing personal of somebody can be read, and that nothing was recorded afterwards.
func erased(t *testing.T, r event.Reader, root secret.MasterKey, id string) {
	t.Helper()
	gone(t, r, id)
	sealed := 0
	for object, chain := range history(t, r, id) {
		for _, e := range chain {
			shown, err := journal.Show(t.Context(), r, root, &e, true)
			must(t, err)
			if shown.Personal != nil || shown.Erased != (e.Sealed != nil) {
				t.Errorf("%s is shown as %+v", shown.ID, shown)
			}
			if e.Sealed != nil {
				sealed++
			}
			if row, err := r.Row(t.Context(), event.RowKey{Table: event.Keys, Key: e.KeyID}); row != nil || err != nil {
				t.Errorf("the key of %s is there: %v", shown.ID, err)
			}
		}
		if n := len(chain); n > 0 {
			if last := chain[n-1].Type; last != "user.removed.v1" && last != "sign_in.erased.v1" &&
				last != "consent.erased.v1" {
				t.Errorf("%s: %s came after the end", object, last)
			}
		}
	}
	if sealed == 0 {
		t.Error("nothing was sealed in the first place")
	}
	for _, ref := range []event.Ref{session.Companion(id), oauth.Companion(id)} {
		if beside, err := r.Record(t.Context(), ref); err != nil || beside != nil && string(beside.Doc) != "{}" {
			t.Errorf("%s is %+v, %v", ref.ID, beside, err)
		}
	}
}

func TestARemovedUserIsErased(t *testing.T) {
	s := newInstallation(t)
	addHuman(t, s, "usr_a", "org_a", "Wendeline")
	addHuman(t, s, "usr_b", "org_a", "Ottokar")
	mark := s.Mark()
	_, err := lifecycle.RemoveUser(t.Context(), s, in(t, "org_a", iam), "usr_a", event.IfMatch{})
	must(t, err)
	s.Then(t, mark,
		eventtest.Fact{Object: "usr_a", Type: "user.removed.v1", Payload: `{}`},
		eventtest.Fact{Object: session.IDFor("usr_a"), Type: "sign_in.erased.v1", Payload: `{}`},
		eventtest.Fact{Object: oauth.IDFor("usr_a"), Type: "consent.erased.v1", Payload: `{}`})
	erased(t, s, s.Master, "usr_a")
	membertest.User(t, s, "usr_c", "org_a", nil) // nothing stands beside it
	_, err = lifecycle.RemoveUser(t.Context(), s, in(t, "org_a", iam), "usr_c", event.IfMatch{})
	must(t, err)
	erased(t, s, s.Master, "usr_c")
	for _, chain := range history(t, s, "usr_b") { // somebody else is as before
		for _, e := range chain {
			if shown, err := journal.Show(t.Context(), s, s.Master, &e, true); err != nil || shown.Erased ||
				(shown.Personal == nil) != (e.Sealed == nil) {
				t.Errorf("%+v, %v", shown, err)
			}
		}
	}
}

// sessions of a node, as far as they need no password.
func sessionsOf(s event.Store, master secret.MasterKey) *session.Sessions {
	return &session.Sessions{Store: s, Master: master, Clock: time.Now, DefaultOrg: "org_a"}
}

func resetOf(word string) session.ResetRequest {
	return session.ResetRequest{LoginName: word, Peer: netip.MustParseAddr("192.0.2.9"), UserAgent: "late " + word}
}

// resetNow asks for a reset in one store, and does what it asks for in another of the same data.
func resetNow(ctx context.Context, ask, answer event.Store, master secret.MasterKey, word string) error {
	if err := sessionsOf(ask, master).RequestReset(ctx, resetOf(word)); err != nil {
		return err
	}
	return sessionsOf(answer, master).AnswerWaitingResets(ctx)
}

// Whatever records something personal of somebody while another node removes them comes before, and is erased, or does
// not happen.
func TestNothingIsRecordedOfSomebodyWhoIsBeingRemoved(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		n := open(t, db)
		root := n.node(0).RootKey()
		permit := in(t, "org_a", iam)
		const rounds = 15
		for round := range rounds {
			id, word := fmt.Sprintf("usr_%d", round), fmt.Sprintf("Wendeline%d", round)
			if round%2 == 0 {
				addHuman(t, n.node(0), id, "org_a", word)
			} else { // nothing stands beside yet
				who := human(word)
				must(t, n.node(0).Do(t.Context(), event.Command{
					Write:  []event.Ref{user.Kind.Ref(id)},
					Claims: []event.Claim{user.NameClaim("org_a", strings.ToLower(word))},
					Decide: func(tx *event.Tx) error { _, err := user.AddHuman(tx, id, "org_a", &who); return err },
				}))
			}
			var all sync.WaitGroup
			start := make(chan struct{})
			do := func(i int, f func(s *store.Store) error) {
				all.Go(func() {
					<-start
					err := f(n.node(i))
					// four nodes at one object: somebody loses too often, and tries again
					for errs.KindOf(err) == errs.Aborted {
						err = f(n.node(i))
					}
					if err != nil && errs.KindOf(err) != errs.NotFound {
						t.Error(err)
					}
				})
			}
			do(0, func(s *store.Store) error {
				_, err := lifecycle.RemoveUser(context.Background(), s, permit, id, event.IfMatch{})
				return err
			})
			for i := range 4 {
				do(i, func(s *store.Store) error {
					profile := human(fmt.Sprint(word, i)).Profile
					_, err := user.ReplaceProfileOf(context.Background(), s, permit, id, event.IfMatch{}, profile)
					return err
				})
				do(i, func(s *store.Store) error {
					return resetNow(context.Background(), s, s, root, word)
				})
			}
			close(start)
			all.Wait()
			erased(t, n.node(1), root, id)
			must(t, resetNow(t.Context(), n.node(1), n.node(1), root, word)) // and nothing later
			erased(t, n.node(0), root, id)
		}
		n.equal(t)
	})
}

// A node that has read the user, and is about to record something personal, loses against another node that removes the
// user in between.
func TestARemovalOnAnotherNodeInBetweenWins(t *testing.T) {
	testdb.On(t, []string{testdb.Postgres}, func(t *testing.T, db testdb.Database) {
		n := open(t, db)
		who := human("Wendeline")
		must(t, n.node(0).Do(t.Context(), event.Command{
			Write:  []event.Ref{user.Kind.Ref("usr_x")},
			Claims: []event.Claim{user.NameClaim("org_a", "wendeline")},
			Decide: func(tx *event.Tx) error { _, err := user.AddHuman(tx, "usr_x", "org_a", &who); return err },
		}))
		decided := 0
		between := &whileDeciding{n.node(0), func() {
			if decided++; decided == 1 {
				_, err := lifecycle.RemoveUser(context.Background(), n.node(1), in(t, "org_a", iam), "usr_x",
					event.IfMatch{})
				must(t, err)
			}
		}}
		must(t, resetNow(t.Context(), n.node(0), between, n.node(0).RootKey(), "Wendeline"))
		if decided < 2 {
			t.Errorf("it decided %d times", decided)
		}
		erased(t, n.node(0), n.node(0).RootKey(), "usr_x")
		n.equal(t)
	})
}

// whileDeciding does something after a command has read everything and decided, and before it is written.
type whileDeciding struct {
	event.Store
	then func()
}

func (w *whileDeciding) Do(ctx context.Context, c event.Command) error {
	decide := c.Decide
	c.Decide = func(tx *event.Tx) error {
		err := decide(tx)
		w.then()
		return err
	}
	return w.Store.Do(ctx, c)
}

// SQLite moves rows from page to page while others come, go and change. Of some who are removed among many nothing
// stays anywhere.
func TestNothingStaysInTheFilesOfSomeAmongMany(t *testing.T) {
	db := testdb.New(t, testdb.SQLite)
	n := open(t, db)
	const people, step = 600, 100
	ids, words := make([]string, people), make([]string, people)
	// inSteps does something for everybody, many in one command.
	inSteps := func(each func(tx *event.Tx, i int) error) {
		for from := 0; from < people; from += step {
			c := event.Command{Origin: event.Origin{Actor: event.System}, Decide: func(tx *event.Tx) error {
				for i := from; i < from+step; i++ {
					if err := each(tx, i); err != nil {
						return err
					}
				}
				return nil
			}}
			for i := from; i < from+step; i++ {
				c.Write, c.Claims = append(c.Write, user.Kind.Ref(ids[i])),
					append(c.Claims, user.NameClaim("org_a", words[i]))
			}
			must(t, n.node(0).Do(t.Context(), c))
		}
	}
	for i := range people {
		ids[i], words[i] = user.Kind.NewID(), strings.ToLower(rand.Text())
	}
	inSteps(func(tx *event.Tx, i int) error {
		who := human(words[i])
		_, err := user.AddHuman(tx, ids[i], "org_a", &who)
		return err
	})
	for round := range 2 {
		inSteps(func(tx *event.Tx, i int) error {
			u, err := user.Kind.Get(tx, ids[i])
			if err != nil {
				return err
			}
			nick := words[i] + strings.Repeat("n", (i*7919+round*104729)%900)
			return u.Append(user.ProfileChanged{Personal: user.ProfileFacts{NickName: &nick}})
		})
	}
	var gone []string
	var all sync.WaitGroup
	for i := 0; i < people; i += 5 {
		gone = append(gone, words[i])
		all.Go(func() {
			if _, err := lifecycle.RemoveUser(context.Background(), n.node(0), in(t, "org_a", iam), ids[i],
				event.IfMatch{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, name := range []string{db.URL, db.URL + "-wal"} {
		content, err := os.ReadFile(name)
		must(t, err)
		content = bytes.ToLower(content)
		if name == db.URL && !bytes.Contains(content, []byte(words[1])) {
			t.Error("the search finds nothing at all")
		}
		found := 0
		for _, word := range gone {
			if bytes.Contains(content, []byte(word)) {
				found++
			}
		}
		if found > 0 {
			t.Errorf("%d of %d are still in %s", found, len(gone), name)
		}
	}
	n.equal(t)
}

// TestScaleOfErasingAnOrganization removes an organization of many people, and searches the files for every one of
// them.
func TestScaleOfErasingAnOrganization(t *testing.T) {
	people := 150
	if os.Getenv("SIGNET_SCALE") != "" {
		people = 1000
	}
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		n := open(t, db)
		words := make([]string, people)
		for i := range people {
			// rows of many sizes, up to the longest names
			words[i] = fmt.Sprintf("Wendeline%sX%dX", strings.Repeat("q", i%175), i)
			addHuman(t, n.node(0), fmt.Sprintf("usr_%05d", i), "org_a", words[i])
		}
		addHuman(t, n.node(0), "usr_other", "org_b", "Ottokar")
		_, err := lifecycle.RemoveOrganization(t.Context(), n.node(0), in(t, "org_a", iam), event.IfMatch{})
		must(t, err)
		began := time.Now()
		must(t, lifecycle.NewCleaner(n.node(0), quiet).Clean(t.Context()))
		took := time.Since(began)
		t.Logf("%s: %d people erased in %v, %.0f/s", db.Engine, people, took.Round(time.Millisecond),
			float64(people)/took.Seconds())
		for _, i := range []int{0, people / 2, people - 1} {
			erased(t, n.node(0), n.node(0).RootKey(), fmt.Sprintf("usr_%05d", i))
		}
		if o, err := org.Kind.Read(t.Context(), n.node(0), "org_a"); err != nil || !o.Data.Empty {
			t.Errorf("%+v, %v", o, err)
		}
		n.equal(t)
		if db.Engine != testdb.SQLite {
			return
		}
		for _, name := range []string{db.URL, db.URL + "-wal"} {
			content, err := os.ReadFile(name)
			must(t, err)
			if name == db.URL && !bytes.Contains(content, []byte("Ottokar")) {
				t.Error("the search finds nothing at all")
			}
			for _, rest := range [][]byte{[]byte("Wendeline"), []byte("wendeline")} {
				if n := bytes.Count(content, rest); n > 0 {
					at := bytes.Index(content, rest)
					t.Errorf("%s holds %d remains: %q", name, n, content[max(0, at-40):at+60])
				}
			}
		}
	})
}
