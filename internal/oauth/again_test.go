package oauth

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/session"
)

// given is what an application sees of an answer.
func given(made *Tokens) Tokens {
	return Tokens{Access: made.Access, Life: made.Life, Refresh: made.Refresh, Scopes: made.Scopes,
		IDToken: made.IDToken, Issued: made.Issued}
}

func TestARefreshTokenThatWasJustReplacedGetsTheSameAnswer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		since func(w *world, answer *Tokens) // what happens after the answer
		asks  []string                       // the second time; the first time all scopes are asked for
		same  bool
	}{
		{"at once", func(*world, *Tokens) {}, nil, true},
		{"asking for the same in other words", func(*world, *Tokens) {},
			[]string{"openid", "offline_access", "email", "email"}, true},
		{"just before the time is over",
			func(w *world, _ *Tokens) { w.store.Advance(refreshGrace - time.Microsecond) }, nil, true},
		{"when the time is over", func(w *world, _ *Tokens) { w.store.Advance(refreshGrace) }, nil, false},
		{"asking for something else", func(*world, *Tokens) {}, []string{"openid"}, false},
		{"after its successor was used", func(w *world, answer *Tokens) {
			_, err := w.Refresh(w.t.Context(), w.client("app_spa"), answer.Refresh, nil)
			must(w.t, err)
		}, nil, false},
		{"after its successor was used at a node that keeps no answers", func(w *world, answer *Tokens) {
			read, _, err := w.familyOf(w.t.Context(), w.client("app_spa"), answer.Refresh)
			must(w.t, err)
			kept, err := w.store.Row(w.t.Context(), answers.Key(read.Family))
			must(w.t, err)
			_, err = w.Refresh(w.t.Context(), w.client("app_spa"), answer.Refresh, nil)
			must(w.t, err)
			w.store.GivenRow(*kept)
		}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			first := w.tokens("app_spa", "usr_a", "openid email offline_access")
			answer, err := w.Refresh(t.Context(), w.client("app_spa"), first.Refresh, nil)
			must(t, err)
			tt.since(w, answer)
			mark := w.store.Mark()
			again, err := w.Refresh(t.Context(), w.client("app_spa"), first.Refresh, tt.asks)
			if tt.same {
				must(t, err)
				if !reflect.DeepEqual(given(again), given(answer)) || !w.counts(again.Access) {
					t.Errorf("got  %+v\nwant %+v", given(again), given(answer))
				}
				_, err = w.Refresh(t.Context(), w.client("app_spa"), again.Refresh, nil)
				must(t, err)
				return
			}
			wants(t, err, ErrInvalidGrant)
			if w.counts(answer.Access) || w.counts(first.Access) {
				t.Error("an access token of the family lives on")
			}
			_, err = w.Refresh(t.Context(), w.client("app_spa"), answer.Refresh, nil)
			wants(t, err, ErrInvalidGrant)
			w.store.Then(t, mark,
				eventtest.Fact{Object: session.IDFor("usr_a"), Type: "sign_in.grant_reused.v1",
					Payload: `{"clientId":"app_spa","what":"refresh_token"}`})
		})
	}
}

// The same answer is given only to whom the first one would be given at that moment.
func TestTheSameAnswerIsForTheSameClientWhileTheTermsHold(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"another client": nil,
		"the consent": func(w *world) {
			must(w.t, w.Withdraw(w.t.Context(), w.signIn("usr_a").Caller, "app_spa"))
		},
		"the user": func(w *world) { w.change("usr_a", user.Deactivated{}) },
		"the application": func(w *world) {
			w.change("app_spa", app.APIAccessSet{Scopes: []string{"signet.self"}})
		},
		"the password":         func(w *world) { w.change("usr_a", user.PasswordSet{}) },
		"the token is revoked": func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.tokens("app_spa", "usr_a", "openid offline_access")
			answer, err := w.Refresh(t.Context(), w.client("app_spa"), first.Refresh, nil)
			must(t, err)
			client := "app_spa"
			switch {
			case change == nil:
				client = "app_jwt"
			case name == "the token is revoked":
				must(t, w.Revoke(t.Context(), w.client("app_spa"), answer.Refresh))
			default:
				change(w)
			}
			_, err = w.Refresh(t.Context(), w.client(client), first.Refresh, nil)
			wants(t, err, ErrInvalidGrant)
			if change == nil && !w.counts(answer.Access) {
				t.Error("another client ended the tokens")
			}
		})
	}
}

func TestOfManyRefreshesAtOnceAllGetTheSameAnswer(t *testing.T) {
	w := newWorld(t)
	first := w.tokens("app_spa", "usr_a", "openid offline_access")
	mark := w.store.Mark()
	const parallel = 6
	answers := make([]*Tokens, parallel)
	var wait sync.WaitGroup
	for i := range parallel {
		wait.Go(func() {
			var err error
			if answers[i], err = w.Refresh(t.Context(), w.client("app_spa"), first.Refresh, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, a := range answers {
		if a == nil || !reflect.DeepEqual(given(a), given(answers[0])) {
			t.Fatalf("got %+v", answers)
		}
	}
	w.store.Then(t, mark) // nothing is on record
}

// Whoever reads the database learns no token, and what is kept is gone soon.
func TestTheAnswerIsKeptSealedAndNotForLong(t *testing.T) {
	w := newWorld(t)
	first := w.tokens("app_spa", "usr_a", "openid email offline_access")
	answer, err := w.Refresh(t.Context(), w.client("app_spa"), first.Refresh, nil)
	must(t, err)
	read, _, err := w.familyOf(t.Context(), w.client("app_spa"), first.Refresh)
	must(t, err)
	row, err := w.store.Row(t.Context(), answers.Key(read.Family))
	must(t, err)
	if row == nil || row.Expires != w.now()+refreshGrace.Microseconds() {
		t.Fatalf("got %+v", row)
	}
	// The user with the quotes of JSON: five bytes are in what is sealed by chance, once in a long while.
	for _, text := range []string{answer.Access, answer.Refresh, answer.IDToken, first.Refresh, `"usr_a"`} {
		if bytes.Contains(row.Value, []byte(text)) || strings.Contains(row.Key, strings.Trim(text, `"`)) {
			t.Errorf("%q is stored as it is", text)
		}
	}
	// The token that it is the answer to opens it, and no other. Nodes of the version before open it by hand.
	if _, err := w.Master.DataKeyOf("answer to a refresh token", []byte(first.Refresh)).Open(row.Value,
		[]byte(read.Family+" email offline_access openid")); err != nil {
		t.Error(err)
	}
	for _, text := range []string{answer.Refresh, "", read.Current} {
		s := &shown{family: read, text: text, scopes: slices.Clone(read.Scopes)}
		if found, err := w.answersTo(s).Read(t.Context(), w.store, read.Family); found != nil || err != nil {
			t.Errorf("%q opens it: %v", text, err)
		}
	}
}
