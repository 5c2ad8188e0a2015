package federated

import (
	"github.com/signet-idm/signet/internal/eventlog/event"
	"slices"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/signin/session"
)

// in is an identity in a session of its provider.
func in(who idp.Identity, sid string) idp.Identity {
	who.Session = sid
	return who
}

func TestASignOutAtAProviderEndsExactlyWhatItNames(t *testing.T) {
	const issuer = "https://up.test"
	for _, c := range []struct {
		name string
		out  SignedOut
		ends []string
	}{
		{"a person", SignedOut{Provider: "idp_b", Issuer: issuer, Subject: "one"},
			[]string{"one in s1", "one in s2", "one in none"}},
		{"a session and its person", SignedOut{Provider: "idp_b", Issuer: issuer, Subject: "one", Session: "s1"},
			[]string{"one in s1"}},
		{"a session", SignedOut{Provider: "idp_b", Issuer: issuer, Session: "s1"}, []string{"one in s1"}},
		{"a session that two people came in", SignedOut{Provider: "idp_b", Issuer: issuer, Session: "s2"},
			[]string{"one in s2", "two in s2", "other in s2"}},
		{"a session and one of its people", SignedOut{Provider: "idp_b", Issuer: issuer, Subject: "two", Session: "s2"},
			[]string{"two in s2"}},
		{"somebody else's session", SignedOut{Provider: "idp_b", Issuer: issuer, Subject: "two", Session: "s1"}, nil},
		{"a session that is unknown", SignedOut{Provider: "idp_b", Issuer: issuer, Session: "s9"}, nil},
		{"a person who is unknown", SignedOut{Provider: "idp_b", Issuer: issuer, Subject: "nobody"}, nil},
		{"of another issuer", SignedOut{Provider: "idp_b", Issuer: "https://other.test", Session: "s1"}, nil},
		{"a person of another issuer", SignedOut{Provider: "idp_b", Issuer: "https://other.test", Subject: "one"}, nil},
		{"of another provider", SignedOut{Provider: "idp_def", Issuer: issuer, Session: "s1"},
			[]string{"at another in s1"}},
		{"a person of another provider", SignedOut{Provider: "idp_def", Issuer: issuer, Subject: "one"},
			[]string{"at another in s1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.person("usr_c", "org_b", "cid", "cid@b.test")
			w.user("usr_b", linked("idp_b", "one"), linked("idp_b", "other"))
			w.user("usr_c", linked("idp_b", "two"))
			another := linked("idp_def", "one")
			another.LinkID = "lnk_def"
			w.user("usr_b", another)
			tokens := map[string]string{}
			for name, who := range map[string]idp.Identity{
				"one in s1": in(w.who("idp_b", "one"), "s1"), "one in s2": in(w.who("idp_b", "one"), "s2"),
				"one in none": w.who("idp_b", "one"),
				"two in s2":   in(w.who("idp_b", "two"), "s2"), "other in s2": in(w.who("idp_b", "other"), "s2"),
				"at another in s1": in(w.who("idp_def", "one"), "s1"),
			} {
				opened, err := w.signIn(who)
				must(t, err)
				tokens[name] = opened.Token
			}
			own := w.caller("usr_b", byPassword, 0)
			mark := w.store.Mark()
			c.out.RequestID = "req_out"
			must(t, w.EndThrough(t.Context(), c.out))
			var over []string
			for name, token := range tokens {
				if _, err := w.Authenticate(t.Context(), token); err != nil {
					over = append(over, name)
				}
			}
			slices.Sort(over)
			slices.Sort(c.ends)
			if !slices.Equal(over, c.ends) {
				t.Errorf("ended %q, want %q", over, c.ends)
			}
			if gone, err := w.Over(t.Context(), "usr_b", []string{own.TokenID}); err != nil || len(gone) > 0 {
				t.Errorf("a session that came in another way has ended: %v", err)
			}
			facts := w.store.Since(t, mark)
			if len(facts) != len(c.ends) {
				t.Errorf("recorded %v", facts)
			}
			for _, f := range facts {
				if f.Type != (session.Ended{}).EventType() {
					t.Errorf("recorded %+v", f)
				}
			}
			before := w.store.Fingerprint()
			must(t, w.EndThrough(t.Context(), c.out))
			if w.store.Fingerprint() != before {
				t.Error("once more, something is written")
			}
		})
	}
}

func TestASignOutAtAProviderEndsAnyNumberOfSessions(t *testing.T) {
	w := newWorld(t)
	w.user("usr_b", linked("idp_b", "one"))
	var tokens []string
	for range 2*endAtOnce + 1 {
		opened, err := w.signIn(in(w.who("idp_b", "one"), "s1"))
		must(t, err)
		tokens = append(tokens, opened.Token)
	}
	must(t, w.EndThrough(t.Context(), SignedOut{Provider: "idp_b", Issuer: "https://up.test", Session: "s1"}))
	for i, token := range tokens {
		if _, err := w.Authenticate(t.Context(), token); err == nil {
			t.Fatalf("session %d counts still", i)
		}
	}
}

// Who has registered through a provider, or has proven there once more who they are, is found by the session of that
// moment.
func TestTheProvidersSessionIsTheLatest(t *testing.T) {
	w := newWorld(t)
	opened, err := w.RegisterThrough(t.Context(), in(w.who("idp_b", "new"), "s1"),
		Registration{UserName: "new", FirstName: "N", LastName: "P", Email: "new@b.test"})
	must(t, err)
	caller, err := w.Authenticate(t.Context(), opened.Token)
	must(t, err)
	again := in(w.who("idp_b", "new"), "s2")
	again.Fresh, again.Proven = true, event.Micros(w.store.Now())
	_, err = w.ReproveThrough(t.Context(), caller, again, session.From{})
	must(t, err)
	for _, sid := range []string{"s1", "s2"} {
		_, err := w.Authenticate(t.Context(), opened.Token)
		must(t, err)
		must(t, w.EndThrough(t.Context(), SignedOut{Provider: "idp_b", Issuer: "https://up.test", Session: sid}))
	}
	if _, err := w.Authenticate(t.Context(), opened.Token); err == nil {
		t.Error("it counts still")
	}
	opened, err = w.RegisterThrough(t.Context(), in(w.who("idp_b", "newer"), "s3"),
		Registration{UserName: "newer", FirstName: "N", LastName: "P", Email: "newer@b.test"})
	must(t, err)
	must(t, w.EndThrough(t.Context(), SignedOut{Provider: "idp_b", Issuer: "https://up.test", Session: "s3"}))
	if _, err := w.Authenticate(t.Context(), opened.Token); err == nil {
		t.Error("who has registered is signed in still")
	}
}

// A session of another provider is not given the sid of one that its person proves something to.
func TestProvingItElsewhereKeepsTheProvidersSession(t *testing.T) {
	w := newWorld(t)
	another := linked("idp_def", "one")
	another.LinkID = "lnk_def"
	w.user("usr_b", linked("idp_b", "one"), another)
	opened, err := w.signIn(in(w.who("idp_b", "one"), "s1"))
	must(t, err)
	caller, err := w.Authenticate(t.Context(), opened.Token)
	must(t, err)
	elsewhere := in(w.who("idp_def", "one"), "s2")
	elsewhere.Fresh, elsewhere.Proven = true, event.Micros(w.store.Now())
	_, err = w.ReproveThrough(t.Context(), caller, elsewhere, session.From{})
	must(t, err)
	must(t, w.EndThrough(t.Context(), SignedOut{Provider: "idp_def", Issuer: "https://up.test", Session: "s2"}))
	_, err = w.Authenticate(t.Context(), opened.Token)
	must(t, err)
	must(t, w.EndThrough(t.Context(), SignedOut{Provider: "idp_b", Issuer: "https://up.test", Session: "s1"}))
	if _, err := w.Authenticate(t.Context(), opened.Token); err == nil {
		t.Error("it counts still")
	}
}

func TestAProvidersSessionIsRememberedAsLongAsOursLives(t *testing.T) {
	w := newWorld(t)
	w.user("usr_b", linked("idp_b", "one"))
	// So long that it is not found by chance.
	const theirs = "a session of the provider"
	for range maxHolders + 5 { // the same people again take no room
		_, err := w.signIn(in(w.who("idp_b", "one"), theirs))
		must(t, err)
	}
	life := policy.Effective(policy.Policy{}, policy.Policy{}).SessionLife()
	all, err := holders.Read(t.Context(), w.store, holdersID("idp_b", "https://up.test", theirs))
	must(t, err)
	if all == nil || !slices.Equal(*all, []holder{{"usr_b", "lnk_one"}}) {
		t.Errorf("got %v", all)
	}
	opened, err := w.signIn(in(w.who("idp_b", "one"), theirs))
	must(t, err)
	w.store.Advance(life - time.Second)
	must(t, w.EndThrough(t.Context(), SignedOut{Provider: "idp_b", Issuer: "https://up.test", Session: theirs}))
	if _, err := w.Authenticate(t.Context(), opened.Token); err == nil {
		t.Error("it counts still")
	}
	if w.store.Stored(t, theirs) {
		t.Error("the provider's session is stored")
	}
}
