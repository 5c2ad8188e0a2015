package org

import (
	"context"
	"fmt"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

var errGuestFactor = errs.New(errs.PermissionDenied, access.SecondFactorRequired,
	"that organization requires a second factor of its guests: prove one in your session (POST /v1/sessions/_prove), or add one to your account first and sign in with it")

// Enter looks for an organization that is not the caller's own, in which the caller uses a permission, and judges
// whether the caller's sign-in is enough for it. Errors: ErrNotFound; those of Admits.
func Enter(ctx context.Context, r event.Reader, caller *access.Caller, id string, p access.Permission,
	now time.Time) error {
	o, err := mustExist(Kind.Read(ctx, r, id))
	if err != nil {
		return err
	}
	return Admits(o, caller, p, now)
}

// Admits refuses a guest whose sign-in is not enough to act in the organization. A caller who has the permission by a
// role in the installation is no guest. Errors: those of AdmitsGuest.
func Admits(o *event.Object[Org], caller *access.Caller, p access.Permission, now time.Time) error {
	if caller.Memberships.Hold(p, access.Installation) {
		return nil
	}
	return AdmitsGuest(o, caller, now)
}

// AdmitsGuest is Admits for a permission by a role in the organization. How guests sign in is decided by their own
// organization. Nobody signs in for personal access tokens and service users. Errors: PermissionDenied,
// SECOND_FACTOR_REQUIRED and RECENT_PROOF_REQUIRED.
func AdmitsGuest(o *event.Object[Org], caller *access.Caller, now time.Time) error {
	policy := o.Data.Policy
	if o.ID == caller.OrgID || !policy.SecondFactorRequired && policy.GuestProofSeconds == 0 || caller.Shown == nil {
		return nil
	}
	shown, err := caller.Shown()
	if err != nil {
		return err
	}
	if policy.SecondFactorRequired && !shown.SecondFactor {
		return errGuestFactor
	}
	if most := policy.GuestProof(); most > 0 && event.Micros(now) > shown.At+most.Microseconds() {
		return errs.New(errs.PermissionDenied, access.RecentProofRequired, fmt.Sprintf(
			"that organization requires a proof of identity of its guests that is at most %d seconds old: sign in again, or renew the proof of your session (POST /v1/sessions/_prove or POST /v1/sessions/_reauthenticate)",
			policy.GuestProofSeconds))
	}
	return nil
}
