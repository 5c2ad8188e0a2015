package federated

import (
	"fmt"
	"testing"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/tally"
)

func TestSignInsThroughProvidersAreCounted(t *testing.T) {
	w := newWorld(t)
	w.Sessions.Tally = tally.New(w.store, w.store.Now, session.SignInThrottled)
	counted := func(org, want string) {
		t.Helper()
		days, err := w.Sessions.Tally.Read(t.Context(), org, 1)
		must(t, err)
		if got := fmt.Sprint(days[0].Day); got != want {
			t.Errorf("%s: got %s, want %s", org, got, want)
		}
	}
	w.user("usr_b", linked("idp_def", "ann")) // of another organization than the provider
	_, err := w.signIn(w.who("idp_def", "ann"))
	must(t, err)
	counted("org_b", "map[fed:{1 0 0}]")
	if _, err := w.signIn(w.who("idp_def", "stranger")); err == nil {
		t.Fatal("a stranger signed in")
	}
	counted("org_def", "map[]") // who is not linked yet has not failed
	_, err = w.RegisterThrough(t.Context(), w.who("idp_def", "new"),
		Registration{UserName: "new", FirstName: "N", LastName: "P", Email: "new@def.test"})
	must(t, err)
	counted("org_def", "map[fed:{1 0 0}]")
	who := w.who("idp_def", "ann")
	w.idp("idp_def", idp.Deactivated{})
	if _, err := w.signIn(who); err == nil {
		t.Fatal("a provider that is switched off let somebody in")
	}
	counted("org_b", "map[fed:{1 1 0}]")
}
