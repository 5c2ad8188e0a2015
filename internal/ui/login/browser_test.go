package login

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/test/testkit"
)

func TestABrowserEntersAndLeavesOnlySessionsThatThereAre(t *testing.T) {
	w := newWorld(t)
	accounts, err := w.Browsers.Accounts(httptest.NewRequestWithContext(t.Context(), "GET", Path, nil))
	testkit.Must(t, err)
	unknown, _ := secret.NewToken(secret.Session)
	if err := accounts.Enter(t.Context(), httptest.NewRecorder(),
		unknown); !errors.Is(err, access.ErrUnauthenticated) || accounts.Current() != nil {
		t.Errorf("entered: %v", err)
	}
	testkit.Must(t, accounts.Enter(t.Context(), httptest.NewRecorder(), w.signIn("usr_a")))
	testkit.Must(t, accounts.Leave(t.Context(), httptest.NewRecorder(), "ses_usr_b"))
	if b := accounts.Current(); b == nil || b.Caller.UserID != "usr_a" {
		t.Errorf("the current session is %+v", b)
	}
	testkit.Must(t, accounts.Leave(t.Context(), httptest.NewRecorder(), "ses_usr_b", "ses_usr_a"))
	if accounts.Current() != nil {
		t.Error("the session is still there")
	}
}
