package api_test

import (
	"net/url"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
)

var (
	registrationOff  = refused(codes.FailedPrecondition, "REGISTRATION_OFF")
	noRegistration   = refused(codes.NotFound, "REGISTRATION_NOT_FOUND")
	registerProblems = invalid("acceptedTermsUri")
)

func startRegistration(org, email string) *signetv1.StartRegistrationRequest {
	return &signetv1.StartRegistrationRequest{OrgId: org, Email: email, PreferredLanguage: "en"}
}

func finishRegistration(token, password string) *signetv1.FinishRegistrationRequest {
	return &signetv1.FinishRegistrationRequest{Token: token, Password: password,
		Profile: &signetv1.FinishRegistrationRequest_Profile{FirstName: "Ada", LastName: "Lovelace"}}
}

// mailAbout waits for a mail, past those about other things.
func mailAbout(t *testing.T, sink *mailtest.Sink, subject string) mailtest.Message {
	t.Helper()
	for {
		if m := sink.Next(t); m.Subject == subject {
			return m
		}
	}
}

// registrationIn is the token in the link of a mail.
func (w *World) registrationIn(t *testing.T, m mailtest.Message) string {
	t.Helper()
	u, err := url.Parse(linkIn.FindString(m.Text))
	if err != nil || u.Host != suffix || u.Scheme != "https" || u.Path != "/register" {
		t.Fatalf("the link is %v (%v) in\n%s", u, err, m.Text)
	}
	token := u.Query().Get("code")
	if !strings.HasPrefix(token, "sgn_reg_") {
		t.Errorf("the token is not one in\n%s", m.Text)
	}
	w.hide(token)
	w.hide(token[:strings.Index(token, ".")])
	return token
}

// registrations: who proves an address becomes a user once, where the organization wants that, and strangers learn
// nothing.
func registrations(t *testing.T, w *World) {
	without := w.newScene(t)
	answered := done[*signetv1.SetOrganizationPolicyResponse](t, &Client{w, w.rest}, without.owner,
		setPolicy(without.org, &signetv1.Policy{Registration: signetv1.RegistrationMode_REGISTRATION_MODE_OPEN}))
	if len(answered.GetWarnings()) != 1 || !strings.Contains(answered.GetWarnings()[0].GetMessage(), "sends no mail") {
		t.Errorf("without mail: %v", answered.GetWarnings())
	}
	(&Client{w, w.rest}).refused(t, refused(codes.FailedPrecondition, "REGISTRATION_NEEDS_MAIL"), nil,
		startRegistration(without.org, "new@mail.example"))

	w, sink := withMail(t, w)
	s := w.newScene(t)
	for _, wire := range w.wires {
		c := &Client{w, wire}
		c.refused(t, registrationOff, nil, startRegistration("", "new@mail.example")) // the default organization
		c.refused(t, registrationOff, nil, startRegistration("org_none", "new@mail.example"))
		open := &signetv1.Policy{Registration: signetv1.RegistrationMode_REGISTRATION_MODE_OPEN}
		for _, bad := range []string{"http://mail.example/terms", "javascript:alert(1)", "terms", "https://"} {
			c.refused(t, invalid("policy.termsUri"), s.owner, setPolicy(s.org, &signetv1.Policy{TermsUri: bad}))
			c.refused(t, invalid("policy.privacyUri"), s.owner, setPolicy(s.org, &signetv1.Policy{PrivacyUri: bad}))
		}
		c.refused(t, invalid("policy.registration"), w.root, setInstallationPolicy(open))
		c.refused(t, invalid("policy.termsUri"), w.root,
			setInstallationPolicy(&signetv1.Policy{TermsUri: "https://mail.example"}))
		set := done[*signetv1.SetOrganizationPolicyResponse](t, c, s.owner, setPolicy(s.org, open))
		same(t, "warnings", len(set.GetWarnings()), 0)
		sameMessage(t, "set", c.policy(t, s.owner, s.org).GetPolicy(), open)

		// Nobody learns who is known.
		known := w.addUser(t, person{Org: s.org, Domain: s.domain, EmailVerified: true})
		email := unique("new") + "@mail.example"
		answer := c.send(t, nil, startRegistration(s.org, email))
		answer.mustBe(t, ok)
		token := w.registrationIn(t, mailAbout(t, sink, "Create your account"))
		same(t, "the answer for somebody",
			c.send(t, nil, startRegistration(s.org, c.user(t, s.owner, known.UserID).GetHuman().GetEmail())).summary(),
			answer.summary())
		mailAbout(t, sink, "You already have an account")
		// and no mail
		same(t, "the answer for the same address",
			c.send(t, nil, startRegistration(s.org, strings.ToUpper(email))).summary(), answer.summary())
		for _, bad := range []string{"", "new", "a@b.example, c@d.example", strings.Repeat("x", 250) + "@b.example"} {
			c.refused(t, invalid("email"), nil, startRegistration(s.org, bad))
		}
		c.refused(t, invalid(orgID), nil, startRegistration(s.org, email), header(orgID, w.here.org))

		// Only addresses in proven domains: this organization has none.
		c.carryOut(t, s.owner,
			setPolicy(s.org, &signetv1.Policy{Registration: signetv1.RegistrationMode_REGISTRATION_MODE_PROVEN_DOMAINS}))
		same(t, "the answer for an address that is not allowed",
			c.send(t, nil, startRegistration(s.org, strings.Replace(email, "@", "+other@", 1))).summary(),
			answer.summary())
		c.refused(t, registrationOff, nil, finishRegistration(token, w.secret("early")))

		// Terms.
		withTerms := &signetv1.Policy{Registration: signetv1.RegistrationMode_REGISTRATION_MODE_OPEN,
			TermsUri: "https://mail.example/terms", PrivacyUri: "https://mail.example/privacy"}
		c.carryOut(t, s.owner, setPolicy(s.org, withTerms))
		password := w.secret("chosen")
		c.refused(t, registerProblems, nil, finishRegistration(token, password))
		c.refused(t, registerProblems, nil,
			with(finishRegistration(token, password), "acceptedTermsUri", "https://mail.example/terms/1"))
		accepting := with(finishRegistration(token, password), "acceptedTermsUri", "https://mail.example/terms")
		c.refused(t, invalid("password"), nil, with(accepting, "password", "short"))
		c.refused(t, invalid("password"), nil, with(accepting, "password", ""))
		c.refused(t, invalid("userName"), nil, with(accepting, "userName", "boss@mail.example"))
		c.refused(t, invalid("profile.lastName"), nil, with(accepting, "profile.lastName", ""))
		c.refused(t, noRegistration, nil, with(accepting, "token", "sgn_reg_x"))
		in := done[*signetv1.FinishRegistrationResponse](t, c, nil, accepting)
		me := c.me(t, &Actor{Token: in.GetToken(), UserID: in.GetUserId()})
		same(t, "user", me.GetUserId(), in.GetUserId())
		same(t, "name", me.GetUserName(), email)
		same(t, "verified", me.GetHuman().GetIsEmailVerified(), true)
		same(t, "terms", me.GetHuman().GetAcceptedTerms().GetUri(), "https://mail.example/terms")
		same(t, "when", me.GetHuman().GetAcceptedTerms().GetAcceptanceDate().AsTime().IsZero(), false)
		same(t, "organization", me.GetDetails().GetResourceOwner(), s.org)
		c.refused(t, noRegistration, nil, accepting)
		c.refused(t, noRegistration, nil, with(accepting, "userName", unique("another")))
		done[*signetv1.CreateSessionResponse](t, c, nil, with(signIn(email, password), "orgId", s.org))

		// A passkey.
		c.carryOut(t, s.owner, setPolicy(s.org, open))
		email = unique("new") + "@mail.example"
		c.must(t, nil, startRegistration(s.org, email))
		token = w.registrationIn(t, mailAbout(t, sink, "Create your account"))
		options := done[*signetv1.StartRegistrationPasskeyResponse](t, c, nil,
			&signetv1.StartRegistrationPasskeyRequest{Token: token}).GetCreationOptions()
		device := &factortest.Authenticator{Origin: "https://" + suffix}
		credential, err := device.Create(options)
		if err != nil {
			t.Fatal(err)
		}
		finishing := proto.CloneOf(finishRegistration(token, ""))
		finishing.Credential = credential
		made := done[*signetv1.FinishRegistrationResponse](t, c, nil, finishing)
		same(t, "a second factor is missing", made.GetSecondFactorRequired(), false)
		c.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{}))
	}
	registeredOnce(t, w, sink, s)
	w.noneIn(t)
}

// registeredOnce: of many who finish the same registration at once, one becomes a user.
func registeredOnce(t *testing.T, w *World, sink *mailtest.Sink, s *scene) {
	c := &Client{w, w.rest}
	c.carryOut(t, s.owner, setPolicy(s.org,
		&signetv1.Policy{Registration: signetv1.RegistrationMode_REGISTRATION_MODE_OPEN}))
	c.must(t, nil, startRegistration(s.org, "once@mail.example"))
	token := w.registrationIn(t, mailAbout(t, sink, "Create your account"))
	password := w.secret("once")
	const many = 64
	answers := make([]*Answer, many)
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() {
			answers[i] = w.send(t, w.wires[i%len(w.wires)], nil,
				finishRegistration(token, password), nil)
		})
	}
	wait.Wait()
	good := 0
	for _, a := range answers {
		if a.status == nil {
			good++
		} else {
			a.mustBe(t, noRegistration)
		}
	}
	same(t, "who became a user", good, 1)
}
