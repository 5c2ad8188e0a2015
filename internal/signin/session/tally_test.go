package session

import (
	"fmt"
	"testing"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/signin/tally"
)

// Addresses are looked up in other organizations, too. Whoever reads the counts of the organization that the sign-in is
// at must not learn from them which addresses are found there.
func TestCountsDoNotTellWhoIsInAnotherOrganization(t *testing.T) {
	s, sessions := world(t)
	sessions.Tally = tally.New(s, s.Now, SignInThrottled)
	verified(t, s, "usr_b", "org_b", "jo@mail.test", byOwner)
	password(t, s, "usr_b", cheap(), user.PasswordSet{})
	counted := func(org, want string) {
		t.Helper()
		days, err := sessions.Tally.Read(t.Context(), org, 1)
		must(t, err)
		if got := fmt.Sprint(days[0].Day); got != want {
			t.Errorf("%s: got %s, want %s", org, got, want)
		}
	}
	for i, login := range []string{"nobody@mail.test", "jo@mail.test"} {
		if _, err := sessions.SignIn(t.Context(), try(login, "wrong", home)); err == nil {
			t.Fatalf("%s signed in", login)
		}
		counted("org_def", fmt.Sprintf("map[pwd:{0 %d 0}]", i+1))
		counted("org_b", "map[]")
	}
	_, err := sessions.SignIn(t.Context(), try("jo@mail.test", right, home))
	must(t, err)
	counted("org_def", "map[pwd:{0 2 0}]")
	counted("org_b", "map[pwd:{1 0 0}]")
}
