package session

import (
	"net/netip"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

func TestStrangersAreBoundedInWhatTheyBegin(t *testing.T) {
	a := arm(t)
	before := a.Fingerprint()
	_, err := a.sessions.StartPasskeySignIn()
	must(t, err)
	if a.Fingerprint() != before {
		t.Error("something is stored for a challenge")
	}
	for name, begin := range map[string]func(peer netip.Addr) error{
		"a reset is asked for": func(peer netip.Addr) error {
			return a.sessions.RequestReset(t.Context(), ResetRequest{LoginName: "nobody", Peer: peer})
		},
		"a code is tried": func(peer netip.Addr) error {
			_, err := a.sessions.Reset(t.Context(), Reset{UserID: "usr_nobody", Code: "X", Password: right, Peer: peer})
			return err
		},
		"a passkey is answered": func(peer netip.Addr) error {
			_, err := a.signInByPasskey(t, func(p *PasskeyAttempt) { p.Peer = peer })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			a.sessions.NetworkLimiter = &ratelimit.NetworkLimiter{PerMinute: 10, Clock: a.Now}
			must(t, a.sessions.NetworkLimiter.Take(home, 10))
			before := a.Fingerprint()
			eventtest.Refused(t, begin(home), errs.ResourceExhausted, ratelimit.NetworkThrottled)
			if a.Fingerprint() != before {
				t.Error("something is stored")
			}
			if err := begin(away); errs.KindOf(err) == errs.ResourceExhausted {
				t.Errorf("another network is refused: %v", err)
			}
		})
	}
}
