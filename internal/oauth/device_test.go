package oauth

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
)

var home, elsewhere = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")

func TestADeviceGetsItsTokensOnce(t *testing.T) {
	w := newWorld(t)
	tv := w.client("app_tv")
	d, err := w.BeginDevice(t.Context(), tv, []string{"openid", "offline_access"})
	must(t, err)
	poll := func() (*Tokens, error) {
		w.store.Advance(6 * time.Second)
		return w.DeviceTokens(t.Context(), tv, d.DeviceCode)
	}
	_, err = poll()
	wants(t, err, ErrAuthorizationPending)
	p, err := w.DeviceByUserCode(t.Context(), home, " "+strings.ToLower(strings.ReplaceAll(d.UserCode, "-", " ")))
	must(t, err)
	if p.App.ID != "app_tv" || p.UserCode != d.UserCode || !slices.Equal(p.Scopes, sorted("offline_access", "openid")) {
		t.Errorf("got %+v", p)
	}
	in := w.signIn("usr_a")
	wants(t, w.ApproveDevice(t.Context(), p, in, nil), ErrConsentRequired)
	wants(t, w.ApproveDevice(t.Context(), p, w.signIn("usr_b"), p.Scopes), ErrWrongOrg)
	must(t, w.ApproveDevice(t.Context(), p, in, p.Scopes))
	wants(t, w.ApproveDevice(t.Context(), p, in, p.Scopes), errUserCode)
	_, err = w.DeviceByUserCode(t.Context(), home, d.UserCode)
	wants(t, err, errUserCode)

	_, err = w.DeviceTokens(t.Context(), w.client("app_spa"), d.DeviceCode)
	wants(t, err, ErrUnauthorizedClient)
	made, err := poll()
	must(t, err)
	if !w.counts(made.Access) || made.Refresh == "" || claimsOf(t, made.IDToken)["sub"] != "usr_a" {
		t.Errorf("got %+v", made)
	}
	_, err = poll()
	wants(t, err, ErrExpiredToken)
}

func TestADeviceIsRefusedAndExpires(t *testing.T) {
	w := newWorld(t)
	tv := w.client("app_tv")
	d, err := w.BeginDevice(t.Context(), tv, nil)
	must(t, err)
	p, err := w.DeviceByUserCode(t.Context(), home, d.UserCode)
	must(t, err)
	must(t, w.RefuseDevice(t.Context(), p))
	_, err = w.DeviceTokens(t.Context(), tv, d.DeviceCode)
	wants(t, err, ErrAccessDenied)
	_, err = w.DeviceTokens(t.Context(), tv, d.DeviceCode)
	wants(t, err, ErrExpiredToken)

	d, err = w.BeginDevice(t.Context(), tv, nil)
	must(t, err)
	p, err = w.DeviceByUserCode(t.Context(), home, d.UserCode)
	must(t, err)
	in := w.signIn("usr_a")
	w.store.Advance(deviceLife)
	wants(t, w.ApproveDevice(t.Context(), p, in, []string{}), errUserCode)
	_, err = w.DeviceTokens(t.Context(), tv, d.DeviceCode)
	wants(t, err, ErrExpiredToken)

	_, err = w.BeginDevice(t.Context(), w.client("app_spa"), nil)
	wants(t, err, ErrUnauthorizedClient)
}

func TestADeviceThatAsksTooOftenHasToSlowDown(t *testing.T) {
	w := newWorld(t)
	tv := w.client("app_tv")
	d, err := w.BeginDevice(t.Context(), tv, nil)
	must(t, err)
	for _, step := range []struct {
		wait time.Duration
		want error
	}{{0, ErrAuthorizationPending}, {4 * time.Second, ErrSlowDown}, {9 * time.Second, ErrSlowDown},
		{15 * time.Second, ErrAuthorizationPending}, {14 * time.Second, ErrSlowDown}} {
		w.store.Advance(step.wait)
		_, err := w.DeviceTokens(t.Context(), tv, d.DeviceCode)
		wants(t, err, step.want)
	}
	// Asking does not make it live longer.
	w.store.Advance(deviceLife - 42*time.Second)
	_, err = w.DeviceTokens(t.Context(), tv, d.DeviceCode)
	wants(t, err, ErrExpiredToken)
}

func TestWhoeverGuessesUserCodesIsSlowedDown(t *testing.T) {
	w := newWorld(t)
	d, err := w.BeginDevice(t.Context(), w.client("app_tv"), nil)
	must(t, err)
	for range MaxUserCodeMisses {
		_, err := w.DeviceByUserCode(t.Context(), home, "BBBB-BBBB")
		wants(t, err, errUserCode)
	}
	_, err = w.DeviceByUserCode(t.Context(), home, d.UserCode)
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Reason != UserCodeThrottled || e.RetryAfter <= 0 ||
		e.RetryAfter > UserCodeWindow {
		t.Errorf("got %v", err)
	}
	_, err = w.DeviceByUserCode(t.Context(), elsewhere, d.UserCode)
	must(t, err)
	// The window does not grow with further tries.
	w.store.Advance(UserCodeWindow)
	_, err = w.DeviceByUserCode(t.Context(), home, "BBBB-BBBB")
	wants(t, err, errUserCode)
}

func TestParallelGuessesAtUserCodesCountEachOther(t *testing.T) {
	w := newWorld(t)
	d, err := w.BeginDevice(t.Context(), w.client("app_tv"), nil)
	must(t, err)
	for range 2 * MaxUserCodeMisses { // right ones are no guesses
		_, err := w.DeviceByUserCode(t.Context(), home, d.UserCode)
		must(t, err)
	}
	var heard atomic.Int64
	var wait sync.WaitGroup
	for range 5 * MaxUserCodeMisses {
		wait.Go(func() {
			if _, err := w.DeviceByUserCode(context.Background(), home, "BBBB-BBBB"); errors.Is(err, errUserCode) {
				heard.Add(1)
			}
		})
	}
	if wait.Wait(); heard.Load() != MaxUserCodeMisses {
		t.Errorf("%d guesses were heard", heard.Load())
	}
}

func TestUserCodes(t *testing.T) {
	const many = 1000
	seen := map[string]bool{}
	for range many {
		code := NewUserCode()
		if len(code) != UserCodeLength || CanonicalUserCode(code[:4]+"-"+strings.ToLower(code[4:])) != code {
			t.Errorf("got %s", code)
		}
		seen[code] = true
	}
	// There are 25 billion: two are the same in one of 50,000 runs, and three times two of them in none.
	if len(seen) < many-2 {
		t.Errorf("only %d of %d are different", len(seen), many)
	}
}
