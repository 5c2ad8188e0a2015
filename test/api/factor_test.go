package api_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/test/testdb"
)

var (
	factorRequired = refused(codes.PermissionDenied, "SECOND_FACTOR_REQUIRED")
	notRecent      = refused(codes.PermissionDenied, "RECENT_PROOF_REQUIRED")
	noFactor       = refused(codes.NotFound, "FACTOR_NOT_FOUND")
)

// codeApp is an authenticator app. The server takes each of its codes once, and not only that of this moment: the first
// one enrols the app, the next one proves it, both right away.
type codeApp struct {
	secret string
	begun  time.Time
}

func (a *codeApp) first() string { return factortest.Code(a.secret, a.begun) }
func (a *codeApp) next() string  { return factortest.Code(a.secret, a.begun.Add(30*time.Second)) }
func (a *codeApp) wrong() string { return factortest.Wrong(a.begun, a.secret) }

// startApp asks for a secret in a session.
func (c *Client) startApp(t *testing.T, as *Actor) *codeApp {
	t.Helper()
	begun := time.Now()
	return &codeApp{begun: begun, secret: factortest.Choose(begun, nil, func() string {
		return done[*signetv1.StartMyTOTPResponse](t, c, as, &signetv1.StartMyTOTPRequest{}).GetSecret()
	})}
}

// withApp enrols an authenticator app in a session.
func (c *Client) withApp(t *testing.T, as *Actor) (a *codeApp, factorID string) {
	t.Helper()
	a = c.startApp(t, as)
	return a, done[*signetv1.ConfirmMyTOTPResponse](t, c, as,
		&signetv1.ConfirmMyTOTPRequest{Code: a.first(), Name: "Phone"}).GetFactorId()
}

// withPasskey enrols a passkey in a session.
func (w *World) withPasskey(t *testing.T, as *Actor) *factortest.Authenticator {
	t.Helper()
	device, _ := (&Client{w, w.rest}).withPasskey(t, as)
	return device
}

func (c *Client) withPasskey(t *testing.T, as *Actor) (device *factortest.Authenticator, factorID string) {
	t.Helper()
	device = &factortest.Authenticator{Origin: "https://" + suffix}
	options := done[*signetv1.StartMyPasskeyResponse](t, c, as, &signetv1.StartMyPasskeyRequest{}).GetCreationOptions()
	credential, err := device.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	added := done[*signetv1.ConfirmMyPasskeyResponse](t, c, as,
		&signetv1.ConfirmMyPasskeyRequest{Credential: credential, Name: "Laptop"})
	return device, added.GetFactorId()
}

// passkeySignIn gives the answer of a device to a challenge for signing in.
func (w *World) passkeySignIn(t *testing.T, over wire, device *factortest.Authenticator) (assertion string) {
	t.Helper()
	options := done[*signetv1.StartPasskeySignInResponse](t, &Client{w, over}, nil,
		&signetv1.StartPasskeySignInRequest{}).GetRequestOptions()
	return answered(t, device, options)
}

func answered(t *testing.T, device *factortest.Authenticator, options string) string {
	t.Helper()
	assertion, err := device.Get(options)
	if err != nil {
		t.Fatal(err)
	}
	return assertion
}

// passkeyProof gives the answer of a device to a challenge of a session.
func (c *Client) passkeyProof(t *testing.T, as *Actor,
	device *factortest.Authenticator) *signetv1.ProveSecondFactorRequest {
	t.Helper()
	options := done[*signetv1.StartPasskeyProofResponse](t, c, as,
		&signetv1.StartPasskeyProofRequest{}).GetRequestOptions()
	return &signetv1.ProveSecondFactorRequest{Assertion: answered(t, device, options)}
}

func (c *Client) myFactors(t *testing.T, as *Actor) *signetv1.ListMyFactorsResponse {
	t.Helper()
	return done[*signetv1.ListMyFactorsResponse](t, c, as, &signetv1.ListMyFactorsRequest{})
}

func (c *Client) prove(t *testing.T, as *Actor, req *signetv1.ProveSecondFactorRequest) {
	t.Helper()
	done[*signetv1.ProveSecondFactorResponse](t, c, as, req)
}

func codeOf(text string) *signetv1.ProveSecondFactorRequest {
	return &signetv1.ProveSecondFactorRequest{TotpCode: text}
}

func recoveryCode(text string) *signetv1.ProveSecondFactorRequest {
	return &signetv1.ProveSecondFactorRequest{RecoveryCode: text}
}

// factorStory: an app is enrolled, asked for at the next sign-in, and stood in for by recovery codes.
func factorStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	here := c.w.signedIn(t, as)
	same(t, "none at first", len(c.myFactors(t, here).GetFactors()), 0)
	c.refused(t, refused(codes.FailedPrecondition, "NO_SECOND_FACTOR"), here, &signetv1.MakeMyRecoveryCodesRequest{})
	confirm := func(code string) *signetv1.ConfirmMyTOTPRequest {
		return &signetv1.ConfirmMyTOTPRequest{Code: code, Name: "Phone"}
	}
	c.refused(t, invalid("code"), here, confirm("000000")) // nothing was started
	a := c.startApp(t, here)
	c.refused(t, invalid("code"), here, confirm(a.wrong()))
	c.refused(t, invalid("code"), c.w.signedIn(t, as), confirm(a.first())) // that session was told no secret
	before := c.me(t, here).GetDetails().GetSequence()
	added := done[*signetv1.ConfirmMyTOTPResponse](t, c, here, confirm(a.first()))
	same(t, "one event", added.GetDetails().GetSequence(), before+1)
	listed := c.myFactors(t, here)
	if f := listed.GetFactors(); len(f) != 1 || f[0].GetFactorId() != added.GetFactorId() ||
		f[0].GetName() != "Phone" || f[0].GetType() != signetv1.FactorType_FACTOR_TYPE_TOTP ||
		time.Since(f[0].GetCreationDate().AsTime()) > time.Hour || listed.GetRecoveryCodesLeft() != 0 {
		t.Errorf("listed %v", listed)
	}
	codesMade := done[*signetv1.MakeMyRecoveryCodesResponse](t, c, here,
		&signetv1.MakeMyRecoveryCodesRequest{}).GetCodes()
	same(t, "codes", len(codesMade), 10)

	in := done[*signetv1.CreateSessionResponse](t, c, nil, signIn(as.LoginName, as.Password))
	if !in.GetSecondFactorRequired() ||
		!slices.Equal(in.GetSecondFactors(),
			[]signetv1.FactorType{signetv1.FactorType_FACTOR_TYPE_TOTP,
				signetv1.FactorType_FACTOR_TYPE_RECOVERY_CODE}) {
		t.Errorf("a sign-in answers %v", in)
	}
	there := *as
	there.Token, there.SessionID = in.GetToken(), in.GetSessionId()
	c.refused(t, factorRequired, &there, &signetv1.GetMyUserRequest{})
	c.refused(t, invalid("totpCode"), &there, codeOf(a.first())) // it enrolled the app
	c.refused(t, invalid("totpCode"), &there, &signetv1.ProveSecondFactorRequest{})
	c.refused(t, invalid("recoveryCode"), &there, with(codeOf(a.next()), "recoveryCode", codesMade[0]))
	c.prove(t, &there, codeOf(a.next()))
	same(t, "the same token is a full one", c.me(t, &there).GetUserId(), as.UserID)

	third := c.w.signedIn(t, as)
	c.refused(t, invalid("totpCode"), third, codeOf(a.next()))
	c.prove(t, third, recoveryCode(codesMade[7]))
	c.me(t, third)
	c.refused(t, invalid("recoveryCode"), third, recoveryCode(codesMade[7]))
	same(t, "codes left", c.myFactors(t, third).GetRecoveryCodesLeft(), 9)

	rename := &signetv1.RenameMyFactorRequest{FactorId: added.GetFactorId(), Name: "My phone"}
	c.refused(t, noFactor, third, &signetv1.RenameMyFactorRequest{FactorId: "fac_x", Name: "My phone"})
	c.refused(t, sequenceMismatch, third, rename, stale)
	c.refused(t, sessionRequired, as, rename)
	done[*signetv1.RenameMyFactorResponse](t, c, third, rename)
	same(t, "its name", c.myFactors(t, third).GetFactors()[0].GetName(), "My phone")

	c.refused(t, noFactor, third, &signetv1.RemoveMyFactorRequest{FactorId: "fac_x"})
	remove := &signetv1.RemoveMyFactorRequest{FactorId: added.GetFactorId()}
	c.refused(t, sequenceMismatch, third, remove, stale)
	c.refused(t, sessionRequired, as, remove)
	done[*signetv1.RemoveMyFactorResponse](t, c, third, remove)
	if left := c.myFactors(t, third); len(left.GetFactors()) != 0 || left.GetRecoveryCodesLeft() != 0 {
		t.Errorf("left: %v", left)
	}
	c.me(t, c.w.signedIn(t, as))
}

// passkeyStory: a passkey opens a session by itself, or proves a second factor in one.
func passkeyStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	here := c.w.signedIn(t, as)
	c.refused(t, refused(codes.FailedPrecondition, "NO_PASSKEY"), here, &signetv1.StartPasskeyProofRequest{})
	c.refused(t, invalid("credential"), here, &signetv1.ConfirmMyPasskeyRequest{Credential: "{}"})
	device, id := c.withPasskey(t, here)
	if f := c.myFactors(t, here).GetFactors(); len(f) != 1 || f[0].GetFactorId() != id ||
		f[0].GetType() != signetv1.FactorType_FACTOR_TYPE_PASSKEY || f[0].GetName() != "Laptop" {
		t.Errorf("listed %v", f)
	}
	enter := func(org string) *signetv1.CreateSessionWithPasskeyRequest {
		return &signetv1.CreateSessionWithPasskeyRequest{Assertion: c.w.passkeySignIn(t, c.wire, device), OrgId: org}
	}
	c.refused(t, invalid("assertion"), nil, &signetv1.CreateSessionWithPasskeyRequest{Assertion: "nonsense"})
	c.refused(t, signInFailed, nil, enter(c.w.there.org))
	for _, org := range []string{"", s.org} {
		req := enter(org)
		in := done[*signetv1.CreateSessionWithPasskeyResponse](t, c, nil, req)
		full := *as
		full.Token = in.GetToken()
		same(t, "user", c.me(t, &full).GetUserId(), as.UserID)
		c.refused(t, signInFailed, nil, req) // a challenge counts once
	}

	there := c.w.signedIn(t, as)
	c.refused(t, factorRequired, there, &signetv1.GetMyUserRequest{})
	proof := c.passkeyProof(t, there, device)
	c.refused(t, invalid("assertion"), c.w.signedIn(t, as), proof) // it is another session's
	c.refused(t, signInFailed, nil, &signetv1.CreateSessionWithPasskeyRequest{Assertion: proof.GetAssertion()})
	proof = c.passkeyProof(t, there, device)
	c.prove(t, there, proof)
	c.me(t, there)
	c.refused(t, invalid("assertion"), there, proof)

	c.w.changeUser(t, as.UserID, user.WasLocked{})
	c.refused(t, signInFailed, nil, enter(""))
}

// strangePasskeys say to be of nobody that there is, or that there can be.
func strangePasskeys(t *testing.T, w *World) {
	s := w.scene(t)
	c := &Client{w, w.rest}
	device := w.withPasskey(t, w.signedIn(t, s.user))
	for _, handle := range []string{"usr_x", "", "\x00", "\xff", s.org, s.robot().UserID} {
		stranger := &factortest.Authenticator{Origin: device.Origin,
			Passkeys: []*factortest.Passkey{device.Passkeys[0].Of(handle)}}
		c.refused(t, signInFailed, nil,
			&signetv1.CreateSessionWithPasskeyRequest{Assertion: c.w.passkeySignIn(t, c.wire, stranger)})
	}
}

// missingFactorStory: a session whose second factor is missing can do nothing but prove it and end itself, whatever it
// asks for, also when it is older than the factor. Personal access tokens go on.
func missingFactorStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := s.holder(t, iamOwner)
	old := c.w.signedIn(t, as)
	c.me(t, old)
	here := c.w.signedIn(t, as)
	a, _ := c.withApp(t, here)
	open := []string{"EndSession", "StartPasskeyProof", "ProveSecondFactor", "Reauthenticate"}
	tried := 0
	for _, op := range operations {
		if op.rule.GetPublic() || slices.Contains(open, op.name()) {
			continue
		}
		tried++
		c.refused(t, factorRequired, old, s.sample(op), op.header())
	}
	if tried < 50 {
		t.Errorf("only %d operations were tried", tried)
	}
	c.me(t, here)
	c.me(t, as)
	// The password alone makes nothing better.
	done[*signetv1.ReauthenticateResponse](t, c, old, &signetv1.ReauthenticateRequest{Password: as.Password})
	c.refused(t, factorRequired, old, &signetv1.GetMyUserRequest{})
	c.prove(t, old, codeOf(a.next()))
	c.me(t, old)
}

// recentStory: who changes factors has proven to be there a short while ago, in a session.
func recentStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	in := c.w.oldSession(t, as)
	changes := []proto.Message{&signetv1.StartMyTOTPRequest{}, &signetv1.ConfirmMyTOTPRequest{Code: "000000"},
		&signetv1.StartMyPasskeyRequest{},
		&signetv1.ConfirmMyPasskeyRequest{Credential: "x"}, &signetv1.MakeMyRecoveryCodesRequest{},
		&signetv1.RemoveMyFactorRequest{FactorId: "fac_x"},
		&signetv1.RenameMyFactorRequest{FactorId: "fac_x", Name: "x"}}
	for _, req := range changes {
		c.refused(t, sessionRequired, as, req)
		c.refused(t, notRecent, in, req)
	}
	again := &signetv1.ReauthenticateRequest{Password: as.Password}
	c.refused(t, sessionRequired, as, again)
	c.refused(t, invalid("password"), in, &signetv1.ReauthenticateRequest{Password: "wrong"})
	c.refused(t, notRecent, in, &signetv1.StartMyTOTPRequest{})
	done[*signetv1.ReauthenticateResponse](t, c, in, again)
	c.withApp(t, in)
}

// factorAdminStory: administrators see and remove the factors of those who hold no more than they do.
func factorAdminStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	_, id := c.withApp(t, c.w.signedIn(t, as))
	listed := done[*signetv1.ListUserFactorsResponse](t, c, s.owner,
		&signetv1.ListUserFactorsRequest{UserId: as.UserID})
	if f := listed.GetFactors(); len(f) != 1 || f[0].GetFactorId() != id {
		t.Errorf("listed %v", listed)
	}
	waiting := c.w.signedIn(t, as)
	c.refused(t, factorRequired, waiting, &signetv1.GetMyUserRequest{})
	remove := &signetv1.RemoveUserFactorRequest{UserId: as.UserID, FactorId: id}
	c.refused(t, permissionDenied, s.user, remove)
	c.refused(t, sequenceMismatch, s.owner, remove, stale)
	done[*signetv1.RemoveUserFactorResponse](t, c, s.owner, remove)
	c.refused(t, noFactor, s.owner, remove)
	c.me(t, waiting)
	robot := c.w.addUser(t, person{Org: s.org, Service: true})
	same(t, "of a service user",
		len(done[*signetv1.ListUserFactorsResponse](t, c, s.owner,
			&signetv1.ListUserFactorsRequest{UserId: robot.UserID}).GetFactors()), 0)
	// Also the last one of somebody who holds more stays.
	boss := s.holder(t, orgOwner)
	_, id = c.withApp(t, c.w.signedIn(t, boss))
	lesser := c.w.addUser(t, person{Org: s.org, Roles: []access.Role{access.OrgUserManager}})
	c.refused(t, targetHoldsMore, lesser, &signetv1.RemoveUserFactorRequest{UserId: boss.UserID, FactorId: id})
}

// factorsOnce: a code, a recovery code, a challenge and a secret count once, however many try at the same moment, over
// all content types and, on PostgreSQL, two nodes.
func factorsOnce(t *testing.T, w *World) {
	s := w.scene(t)
	c := &Client{w, w.rest}
	wires := slices.Clone(w.wires)
	if w.db.Engine == testdb.Postgres {
		node := w.secondNode(t)
		wires = append(wires, node, webWire(node))
	}
	count := func(name string, as *Actor, req proto.Message, others ...Want) {
		t.Helper()
		answers := make([]*Answer, 64)
		var wait sync.WaitGroup
		for i := range answers {
			wait.Go(func() { answers[i] = w.send(t, wires[i%len(wires)], as, req, nil) })
		}
		wait.Wait()
		succeeded := 0
		for _, a := range answers {
			if a.status == nil {
				succeeded++
			} else if !slices.ContainsFunc(append(others, throttledAnswer),
				func(o Want) bool { return o.Code == a.code() && o.Reason == a.reason() }) {
				t.Errorf("%s: one answer is %s", name, a.summary())
			}
		}
		same(t, name, succeeded, 1)
	}
	wrong := refused(codes.InvalidArgument, "INVALID_REQUEST")
	fresh := func() (*Actor, *Actor) {
		as := w.addUser(t, person{Org: s.org, Domain: s.domain})
		return as, w.signedIn(t, as)
	}
	as, here := fresh()
	a := c.startApp(t, here)
	count("secrets", here, &signetv1.ConfirmMyTOTPRequest{Code: a.first()}, wrong)
	same(t, "apps", len(c.myFactors(t, here).GetFactors()), 1)
	count("codes", w.signedIn(t, as), codeOf(a.next()), wrong)

	as, here = fresh()
	c.withApp(t, here)
	made := done[*signetv1.MakeMyRecoveryCodesResponse](t, c, here, &signetv1.MakeMyRecoveryCodesRequest{}).GetCodes()
	count("recovery codes", w.signedIn(t, as), recoveryCode(made[0]), wrong)
	same(t, "codes left", c.myFactors(t, here).GetRecoveryCodesLeft(), 9)

	as, here = fresh()
	device := w.withPasskey(t, here)
	there := w.signedIn(t, as)
	count("challenges of a session", there, c.passkeyProof(t, there, device), wrong)
	count("challenges to sign in", nil,
		&signetv1.CreateSessionWithPasskeyRequest{Assertion: w.passkeySignIn(t, w.rest, device)}, signInFailed)
	options := done[*signetv1.StartMyPasskeyResponse](t, c, here,
		&signetv1.StartMyPasskeyRequest{}).GetCreationOptions()
	credential, err := (&factortest.Authenticator{Origin: "https://" + suffix}).Create(options)
	if err != nil {
		t.Fatal(err)
	}
	count("new passkeys", here, &signetv1.ConfirmMyPasskeyRequest{Credential: credential}, wrong,
		refused(codes.AlreadyExists, "PASSKEY_EXISTS"))
	same(t, "passkeys", len(c.myFactors(t, here).GetFactors()), 2)
}

// throttleFactors: wrong codes slow down the next ones, in every session of the user, and end none.
func throttleFactors(t *testing.T, w *World) {
	s := w.scene(t)
	c := &Client{w, w.rest}
	as := w.addUser(t, person{Org: s.org, Domain: s.domain})
	here := w.signedIn(t, as)
	a, _ := c.withApp(t, here)
	there := w.signedIn(t, as)
	_, heard := untilThrottled(t, w, w.rest, there, codeOf(a.wrong()), invalid("totpCode"))
	if heard < freeAttempts {
		t.Errorf("turned away after %d attempts", heard)
	}
	untilThrottled(t, w, w.grpc, w.signedIn(t, as), recoveryCode("wrong"), invalid("recoveryCode"))
	same(t, "state", c.me(t, here).GetState(), signetv1.User_STATE_ACTIVE)
	c.refused(t, factorRequired, there, &signetv1.GetMyUserRequest{})
	c.session(t, as) // passwords are counted by themselves
}
