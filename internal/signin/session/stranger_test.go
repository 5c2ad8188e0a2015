package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// longest notes the longest identifier that is asked for.
type longest struct {
	event.Store
	bytes int
}

func (l *longest) Record(ctx context.Context, ref event.Ref) (*event.Record, error) {
	l.bytes = max(l.bytes, len(ref.ID))
	return l.Store.Record(ctx, ref)
}

func TestAnOrganizationThatCannotBeIsNotKeptAnywhere(t *testing.T) {
	s, sessions := world(t)
	withPassword(t, s, cheap())
	asked := &longest{Store: s}
	sessions.Store = asked
	counted := map[string]bool{}
	for i := range 3 {
		a := try("jo", right, home)
		a.OrgID = fmt.Sprint(strings.Repeat("x", 1<<20), i)
		if _, err := sessions.SignIn(t.Context(), a); !errors.Is(err, ErrSignInFailed) {
			t.Errorf("signing in: %v", err)
		}
		u, typed, err := sessions.find(t.Context(), "jo@def.test", NameScope{Org: a.OrgID})
		if must(t, err); u != nil {
			t.Errorf("found %v", u)
		}
		counted[strings.Join(typed.Parts(), "|")] = true
	}
	if asked.bytes > event.MaxID {
		t.Errorf("the store is asked for an identifier of %d bytes", asked.bytes)
	}
	for typed := range counted {
		if len(typed) > 200 {
			t.Errorf("an attempt is counted under %d bytes", len(typed))
		}
	}
	if len(counted) != 3 {
		t.Errorf("names in %d organizations are counted apart", len(counted))
	}
}

func TestOrganizationsThatDoNotExistHaveOneShare(t *testing.T) {
	_, sessions := world(t)
	for id, want := range map[string]string{"org_def": "org_def", "org_b": "org_b", "org_x": "",
		"made up": "", "": ""} {
		_, shareOf, err := org.ReadPolicy(t.Context(), sessions.Store, id)
		if must(t, err); shareOf != want {
			t.Errorf("%q has the share of %q", id, shareOf)
		}
	}
}

// panics does so about one name, wherever it is looked for.
type panics struct{ event.Store }

func (b panics) Find(ctx context.Context, ways []event.Lookup) ([]string, error) {
	for _, w := range ways {
		if w.Column == user.VerifiedEmail && w.Values[0] == user.EmailDigest("boom@mail.test") {
			panic("about boom@mail.test")
		}
	}
	return b.Store.Find(ctx, ways)
}

type panicsEarly struct{ event.Store }

func (b panicsEarly) Find(ctx context.Context, ways []event.Lookup) ([]string, error) {
	if slices.Contains(claimsOf(ways), org.DomainClaim("mail.test")) {
		panic("about boom@mail.test")
	}
	return b.Store.Find(ctx, ways)
}

func claimsOf(ways []event.Lookup) (claims []event.Claim) {
	for _, w := range ways {
		claims = append(claims, w.Claim)
	}
	return claims
}

func TestANameThatLeadsToAPanicEndsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, wrap := range map[string]func(event.Store) event.Store{
			"in a lookup of the name": func(s event.Store) event.Store { return panics{s} },
			"before the lookups":      func(s event.Store) event.Store { return panicsEarly{s} },
		} {
			s, sessions := world(t)
			withPassword(t, s, cheap())
			must(t, sessions.RequestReset(t.Context(), ResetRequest{LoginName: "boom@mail.test", Peer: home}))
			must(t, sessions.RequestReset(t.Context(),
				ResetRequest{LoginName: "jo", Peer: home, UserAgent: "browser", RequestID: "req_1"}))
			mark := s.Mark()
			sessions.Store = wrap(s)
			var log strings.Builder
			ctx, stop := context.WithTimeout(t.Context(), 3*resetBeat+1)
			sessions.AnswerResets(ctx, slog.New(slog.NewTextHandler(&log, nil)))
			stop()
			s.Then(t, mark, requested)
			if rows, err := s.RowsOf(t.Context(), event.Deliveries, resetPrefix, "", 10); err != nil || len(rows) != 0 {
				t.Errorf("%s: %d requests wait still, %v", name, len(rows), err)
			}
			if text := log.String(); strings.Count(text, "level=ERROR") != 1 ||
				!strings.Contains(text, "stranger_test.go") || strings.Contains(text, "boom") {
				t.Errorf("%s: the log says %s", name, text)
			}
		}
	})
}

func TestAPanicInALookupIsAnErrorOfTheSignIn(t *testing.T) {
	s, sessions := world(t)
	sessions.Store = panics{s}
	_, err := sessions.SignIn(t.Context(), try("boom@mail.test", "wrong", home))
	if _, bug := errors.AsType[*errs.Panicked](err); !bug || strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}
}
