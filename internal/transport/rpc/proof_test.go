package rpc

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
)

var errNotEnough = errs.New(errs.PermissionDenied, "RECENT_PROOF_REQUIRED", "prove it again")

func TestWhoNamesThemselvesNeedsTheProofOfTheRule(t *testing.T) {
	var asked atomic.Pointer[access.Caller]
	l := newLab(t, func(c *Config) {
		c.Proven = func(_ context.Context, caller *access.Caller, recent, person bool) error {
			if asked.Store(caller); !recent || person {
				t.Error("another proof is asked for")
			}
			return errNotEnough
		}
	})
	own := setPassword
	own.path = strings.Replace(own.path, "usr_9", "usr_1", 1)
	own.msg = &signetv1.SetUserPasswordRequest{UserId: "usr_1", Password: "x"}
	l.everywhere(t, setPassword.as("owner"), func(t *testing.T, o outcome) {
		if o.code != 0 || asked.Load() != nil {
			t.Errorf("for somebody else: %d %s", o.code, o.reason)
		}
	}, func() {})
	l.everywhere(t, own.as("owner"), func(t *testing.T, o outcome) {
		if o.code != 7 || o.reason != "RECENT_PROOF_REQUIRED" || asked.Load().UserID != "usr_1" {
			t.Errorf("for oneself: %d %s", o.code, o.reason)
		}
	}, func() { asked.Store(nil) })
	l = newLab(t, func(c *Config) { c.Proven = nil })
	l.everywhere(t, own.as("owner"), func(t *testing.T, o outcome) {
		if o.code != 7 || o.reason != string(access.PermissionDenied) {
			t.Errorf("where nobody can prove anything: %d %s", o.code, o.reason)
		}
	}, func() {})
}

func TestAPermitIsRenewedWithTheProof(t *testing.T) {
	var enough atomic.Bool
	l := newLab(t, func(c *Config) {
		c.Proven = func(context.Context, *access.Caller, bool, bool) error {
			if enough.Load() {
				return nil
			}
			return errNotEnough
		}
	})
	l.fake.hook = func(ctx context.Context) error {
		enough.Store(false)
		_, err := call.From(ctx).Permit.Renew(ctx)
		return err
	}
	own := setPassword
	own.path = strings.Replace(own.path, "usr_9", "usr_1", 1)
	own.msg = &signetv1.SetUserPasswordRequest{UserId: "usr_1", Password: "x"}
	l.everywhere(t, own.as("owner"), func(t *testing.T, o outcome) {
		if o.code != 7 || o.reason != "RECENT_PROOF_REQUIRED" {
			t.Errorf("got %d %s", o.code, o.reason)
		}
	}, func() { enough.Store(true) })
}

func TestAProofNeedsSomebodyItIsAbout(t *testing.T) {
	for name, c := range map[string]struct {
		rule    *signetv1.Rule
		request protoreflect.FullName
		refused bool
	}{
		"the caller": {&signetv1.Rule{Who: &signetv1.Rule_Authenticated{Authenticated: true},
			Scope: signetv1.Scope_SCOPE_SELF, Proof: signetv1.Proof_PROOF_RECENT},
			"signet.v1.SetMyEmailRequest", false},
		"a user": {&signetv1.Rule{Who: &signetv1.Rule_Permission{Permission: "user.write"},
			Scope: signetv1.Scope_SCOPE_CONTEXT, Proof: signetv1.Proof_PROOF_SESSION},
			"signet.v1.SetUserEmailRequest", false},
		"nobody": {&signetv1.Rule{Who: &signetv1.Rule_Permission{Permission: "user.write"},
			Scope: signetv1.Scope_SCOPE_CONTEXT, Proof: signetv1.Proof_PROOF_SESSION},
			"signet.v1.AddHumanUserRequest", true},
		"the decision of a person": {&signetv1.Rule{Who: &signetv1.Rule_Permission{Permission: "user.write"},
			Scope: signetv1.Scope_SCOPE_CONTEXT, Proof: signetv1.Proof_PROOF_RECENT_PERSON},
			"signet.v1.AddHumanUserRequest", false},
		"a decision that nobody is permitted": {&signetv1.Rule{Who: &signetv1.Rule_Authenticated{Authenticated: true},
			Scope: signetv1.Scope_SCOPE_SELF, Proof: signetv1.Proof_PROOF_RECENT_PERSON},
			"signet.v1.AddHumanUserRequest", true},
		"a decision about something that has to be found": {
			&signetv1.Rule{Who: &signetv1.Rule_Permission{Permission: "user.write"},
				Scope: signetv1.Scope_SCOPE_TARGET, Proof: signetv1.Proof_PROOF_RECENT_PERSON},
			"signet.v1.AddHumanUserRequest", true},
		"whoever it is": {&signetv1.Rule{Who: &signetv1.Rule_Public{Public: true}, Scope: signetv1.Scope_SCOPE_SELF,
			Proof: signetv1.Proof_PROOF_SESSION},
			"signet.v1.StartPasskeySignInRequest", true},
	} {
		input, err := protoregistry.GlobalTypes.FindMessageByName(c.request)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&operation{rule: c.rule, input: input}).checkRule(); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
