package api_test

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/servertest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var secondFactorRequired = refused(codes.PermissionDenied, "SECOND_FACTOR_REQUIRED")

// byDefault is what counts where nothing is set.
func byDefault() *signetv1.Policy {
	return &signetv1.Policy{PasswordMinLength: 8, CommonPasswordsRefused: true, NetworkAttempts: 5,
		NetworkWaitSeconds: 900, AccountAttempts: 50, AccountWaitSeconds: 10, SessionSeconds: 43200}
}

func setPolicy(org string, p *signetv1.Policy) proto.Message {
	return &signetv1.SetOrganizationPolicyRequest{OrgId: org, Policy: p}
}

func setInstallationPolicy(p *signetv1.Policy) proto.Message {
	return &signetv1.SetInstallationPolicyRequest{Policy: p}
}

func (c *Client) policy(t *testing.T, as *Actor, org string) *signetv1.GetOrganizationPolicyResponse {
	t.Helper()
	return done[*signetv1.GetOrganizationPolicyResponse](t, c, as, &signetv1.GetOrganizationPolicyRequest{OrgId: org})
}

// policyBoundCases send every number of a policy at its edges. What is valid ends at an if-match that does not hold.
func policyBoundCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	for _, b := range []struct {
		field       string
		least, most int32 // zero is always taken: it asks for nothing
	}{
		{"passwordMinLength", 1, 72},
		{"networkAttempts", 1, 20},
		{"networkWaitSeconds", 60, 3600},
		{"accountAttempts", 10, 1000},
		{"accountWaitSeconds", 1, 30},
		{"sessionSeconds", 300, 2592000},
		{"sessionIdleSeconds", 60, 2592000},
	} {
		for value, taken := range map[int32]bool{0: true, b.least: true, b.most: true, b.least - 1: b.least == 1,
			b.most + 1: false, -1: false, -2147483648: false, 2147483647: false} {
			want := invalid("policy." + b.field)
			if taken {
				want = sequenceMismatch
			}
			for by, c := range map[string]Case{
				"an organization":  {As: s.owner, Req: setPolicy(s.org, &signetv1.Policy{})},
				"the installation": {As: w.root, Req: setInstallationPolicy(&signetv1.Policy{})},
			} {
				c.Name, c.Req, c.Header, c.Want = fmt.Sprintf("%s/%s %d", by, b.field, value),
					with(c.Req, "policy."+b.field, value), stale, want
				cases = append(cases, c)
			}
		}
	}
	return append(cases,
		Case{Name: "an organization without a policy", As: s.owner, Req: setPolicy(s.org, nil),
			Want: invalid("policy")},
		Case{Name: "the installation without a policy", As: w.root, Req: setInstallationPolicy(nil),
			Want: invalid("policy")})
}

// organizationPolicyStory: what an organization asks for counts at once, in it and nowhere else.
func organizationPolicyStory(t *testing.T, c *Client) {
	s, other := c.w.newScene(t), c.w.scene(t)
	before := c.policy(t, s.owner, s.org)
	sameMessage(t, "nothing is set", before.GetPolicy(), &signetv1.Policy{})
	sameMessage(t, "what counts", before.GetEffective(), byDefault())
	sameMessage(t, "defaults", before.GetDefaults(), byDefault())
	same(t, "details", before.GetDetails().GetSequence(), c.org(t, s.owner, s.org).GetDetails().GetSequence())

	asked := &signetv1.Policy{
		PasswordMinLength:              12,
		CommonPasswordsRefused:         true,
		PasswordRulesForAdministrators: true,
		NetworkAttempts:                2,
		NetworkWaitSeconds:             3600,
		AccountAttempts:                10,
		AccountWaitSeconds:             30,
		SessionSeconds:                 3600,
		SessionIdleSeconds:             600,
	}
	c.refused(t, sequenceMismatch, s.owner, setPolicy(s.org, asked), header("if-match", "1"))
	d := c.carryOut(t, s.owner, setPolicy(s.org, asked),
		header("if-match", strconv.FormatUint(before.GetDetails().GetSequence(), 10)))
	same(t, "sequence", d.GetSequence(), before.GetDetails().GetSequence()+1)
	for name, as := range map[string]*Actor{"its owner": s.owner, "who sees everything in it": s.holder(t, orgViewer),
		"who sees everything": s.holder(t, iamViewer), "the installation's owner": c.w.root} {
		shown := c.policy(t, as, s.org)
		sameMessage(t, name+": set", shown.GetPolicy(), asked)
		sameMessage(t, name+": what counts", shown.GetEffective(), asked)
		same(t, name+": sequence", shown.GetDetails().GetSequence(), d.GetSequence())
	}
	for _, role := range []string{orgViewer, userManager, settingsManager, iamViewer, iamOrgManager, nothing} {
		c.refused(t, permissionDenied, s.holder(t, role), setPolicy(s.org, &signetv1.Policy{}))
	}
	sameMessage(t, "elsewhere", c.policy(t, other.owner, other.org).GetEffective(), byDefault())

	// Every path to a new password.
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	mine := c.w.signedIn(t, as)
	person := func(password string) proto.Message {
		return &signetv1.AddHumanUserRequest{
			UserName: unique("new"),
			Password: password,
			Profile:  &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "A", LastName: "B"},
			Email:    &signetv1.SetupOrganizationRequest_Human_Email{Email: unique("new") + "@mail.example"},
		}
	}
	for _, bad := range []string{wide(11), "elevenchars", "Password1234"} {
		c.refused(t, invalid("password"), s.owner, setPassword(as.UserID, bad))
		c.refused(t, invalid("newPassword"), mine, changePassword(as.Password, bad))
		c.refused(t, invalid("password"), s.owner, person(bad))
	}
	people := proto.CloneOf(asked)
	people.PasswordRulesForAdministrators = false
	c.carryOut(t, s.owner, setPolicy(s.org, people))
	sameMessage(t, "for people only", c.policy(t, s.owner, s.org).GetEffective(), people)
	c.refused(t, invalid("newPassword"), mine, changePassword(as.Password, "elevenchars"))
	done[*signetv1.AddHumanUserResponse](t, c, s.owner, person("x"))
	c.carryOut(t, s.owner, setPolicy(s.org, asked))
	done[*signetv1.AddHumanUserResponse](t, c, s.owner, person(""))
	done[*signetv1.AddHumanUserResponse](t, c, s.owner, person(wide(6)+"kettle"))
	next := c.w.secret("allowed")
	done[*signetv1.ChangeMyPasswordResponse](t, c, mine, changePassword(as.Password, next))
	as.Password = c.w.secret("allowed too")
	done[*signetv1.SetUserPasswordResponse](t, c, s.owner,
		with(setPassword(as.UserID, as.Password), "noChangeRequired", true))
	// not in another organization
	done[*signetv1.SetUserPasswordResponse](t, c, other.owner, setPassword(other.user.UserID, "x"))

	// Sessions live as long as it says.
	in := done[*signetv1.CreateSessionResponse](t, c, nil, signIn(as.LoginName, as.Password))
	if life := time.Until(in.GetExpirationDate().AsTime()); life < 9*time.Minute || life > 10*time.Minute {
		t.Errorf("unused, the session lives for %v", life)
	}
	c.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{SessionSeconds: 3600}))
	in = done[*signetv1.CreateSessionResponse](t, c, nil, signIn(as.LoginName, as.Password))
	if life := time.Until(in.GetExpirationDate().AsTime()); life < 59*time.Minute || life > time.Hour {
		t.Errorf("the session lives for %v", life)
	}
	// Less than the installation asks for is kept, and does not count.
	lax := &signetv1.Policy{NetworkAttempts: 20, NetworkWaitSeconds: 60, AccountAttempts: 1000, AccountWaitSeconds: 1,
		SessionSeconds: 2592000}
	c.carryOut(t, s.owner, setPolicy(s.org, lax))
	sameMessage(t, "set", c.policy(t, s.owner, s.org).GetPolicy(), lax)
	sameMessage(t, "what counts", c.policy(t, s.owner, s.org).GetEffective(), byDefault())
	c.session(t, as) // twelve hours
}

// policyPreviewStory: a policy can be tried by whoever may set it, with the same refusals and warnings, and nothing
// changes.
func policyPreviewStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	preview := func(p *signetv1.Policy) proto.Message {
		return &signetv1.PreviewOrganizationPolicyRequest{OrgId: s.org, Policy: p}
	}
	tried := &signetv1.Policy{SecondFactorRequired: true, PasswordMinLength: 20,
		SignInMethods: []signetv1.SignInMethod{signetv1.SignInMethod_SIGN_IN_METHOD_IDENTITY_PROVIDER}}
	for _, role := range []string{orgViewer, userManager, settingsManager, iamViewer, iamOrgManager, nothing} {
		c.refused(t, permissionDenied, s.holder(t, role), preview(tried))
	}
	before := c.policy(t, s.owner, s.org)
	events := typesOf(c.listEvents(t, s.owner, &signetv1.ListEventsRequest{}))
	found := done[*signetv1.PreviewOrganizationPolicyResponse](t, c, s.owner, preview(tried))
	if len(found.GetWarnings()) == 0 || found.GetIncomplete() {
		t.Errorf("got %v", found)
	}
	for _, bad := range []*signetv1.Policy{{TermsUri: "http://mail.example"}, {IdpIds: []string{"idp_none"}},
		{SessionSeconds: 1}} {
		want := c.send(t, s.owner, setPolicy(s.org, bad))
		c.refused(t, Want{Code: want.code(), Reason: want.reason(), Fields: want.fields()}, s.owner, preview(bad))
	}
	c.refused(t, sequenceMismatch, s.owner, preview(tried), stale)
	sameMessage(t, "afterwards", c.policy(t, s.owner, s.org), before)
	if after := typesOf(c.listEvents(t, s.owner, &signetv1.ListEventsRequest{})); !slices.Equal(after, events) {
		t.Errorf("events afterwards: %q, before: %q", after, events)
	}
	set := done[*signetv1.SetOrganizationPolicyResponse](t, c, s.owner, setPolicy(s.org, tried))
	same(t, "warnings", len(set.GetWarnings()), len(found.GetWarnings()))
	for i, warning := range set.GetWarnings() {
		sameMessage(t, "warning", warning, found.GetWarnings()[i])
	}
}

// secondFactorPolicyStory: a session that has not proven a second factor can do nothing else from the next request on.
func secondFactorPolicyStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	in := c.session(t, c.w.addUser(t, person{Org: s.org, Domain: s.domain}))
	another := c.session(t, s.user)
	c.me(t, in)
	c.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{SecondFactorRequired: true}))
	c.refused(t, secondFactorRequired, in, &signetv1.GetMyUserRequest{})
	c.refused(t, secondFactorRequired, in, profile())
	c.refused(t, secondFactorRequired, c.session(t, s.user), &signetv1.GetMyUserRequest{})
	c.me(t, s.user) // a personal access token is no session
	done[*signetv1.EndSessionResponse](t, c, another, &signetv1.EndSessionRequest{SessionId: another.SessionID})
	c.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{}))
	c.me(t, in)
}

// installationPolicy needs an installation of its own, on PostgreSQL with two nodes: what is set on one counts on the
// other with the very next request.
func installationPolicy(t *testing.T, outer *World) {
	w := openWorld(t, testdb.New(t, outer.db.Engine))
	nodes := []wire{w.rest}
	if w.db.Engine == testdb.Postgres {
		nodes = append(nodes, w.secondNode(t))
	}
	s, own := w.newScene(t), w.newScene(t)
	c := &Client{w, w.rest}
	viewer := s.holder(t, iamViewer)
	session := c.session(t, s.user)
	read := func(c *Client, as *Actor) *signetv1.GetInstallationPolicyResponse {
		t.Helper()
		return done[*signetv1.GetInstallationPolicyResponse](t, c, as, &signetv1.GetInstallationPolicyRequest{})
	}
	sameMessage(t, "by default", read(c, w.root).GetEffective(), byDefault())
	c.carryOut(t, own.owner, setPolicy(own.org,
		&signetv1.Policy{PasswordMinLength: 4, SessionSeconds: 600, SessionIdleSeconds: 300,
			RememberDeviceSeconds: 86400}))
	for _, wire := range w.wires {
		c := &Client{w, wire}
		for _, as := range []*Actor{s.owner, s.holder(t, iamOrgManager), s.user} {
			c.refused(t, permissionDenied, as, &signetv1.GetInstallationPolicyRequest{})
			c.refused(t, permissionDenied, as, setInstallationPolicy(&signetv1.Policy{}))
		}
		c.refused(t, permissionDenied, viewer, setInstallationPolicy(&signetv1.Policy{}))
		before := read(c, viewer)
		c.refused(t, sequenceMismatch, w.root, setInstallationPolicy(&signetv1.Policy{}), stale)
		set := &signetv1.Policy{PasswordMinLength: 9, PasswordRulesForAdministrators: true, SessionSeconds: 86400,
			SessionIdleSeconds: 900, NetworkAttempts: 10, RememberDeviceSeconds: 864000}
		d := c.carryOut(t, w.root, setInstallationPolicy(set),
			header("if-match", strconv.FormatUint(before.GetDetails().GetSequence(), 10)))
		shown := read(c, viewer)
		same(t, "sequence", shown.GetDetails().GetSequence(), d.GetSequence())
		sameMessage(t, "set", shown.GetPolicy(), set)
		counts := byDefault()
		counts.PasswordMinLength, counts.SessionSeconds, counts.SessionIdleSeconds, counts.NetworkAttempts = 9, 86400, 900, 10
		counts.RememberDeviceSeconds = 864000
		counts.PasswordRulesForAdministrators = true
		sameMessage(t, "what counts", shown.GetEffective(), counts)
		sameMessage(t, "in an organization", c.policy(t, s.owner, s.org).GetEffective(), counts)
		counts.SessionSeconds, counts.SessionIdleSeconds, counts.RememberDeviceSeconds = 600, 300, 86400
		sameMessage(t, "in one that asks for more, and for less",
			c.policy(t, own.owner, own.org).GetEffective(), counts)

		c.refused(t, invalid("human.password"), w.root, setup("eight888"))
		done[*signetv1.SetupOrganizationResponse](t, c, w.root, setup(w.secret("founder")))
		c.refused(t, invalid("password"), own.owner, setPassword(own.user.UserID, "eight888"))
		c.refused(t, invalid("newPassword"), w.signedIn(t, own.user), changePassword(own.user.Password, "eight888"))

		// The second factor, for everybody and at once.
		for _, at := range nodes {
			(&Client{w, at}).me(t, session)
		}
		for i := range nodes {
			here, there := &Client{w, nodes[i]}, &Client{w, nodes[(i+1)%len(nodes)]}
			here.carryOut(t, w.root, setInstallationPolicy(&signetv1.Policy{SecondFactorRequired: true}))
			there.refused(t, secondFactorRequired, session, &signetv1.GetMyUserRequest{})
			here.refused(t, secondFactorRequired, session, &signetv1.GetMyUserRequest{})
			c.refused(t, secondFactorRequired, session, profile())
			here.carryOut(t, w.root, setInstallationPolicy(&signetv1.Policy{}))
			there.me(t, session)
			here.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{SecondFactorRequired: true}))
			there.refused(t, secondFactorRequired, session, &signetv1.GetMyUserRequest{})
			here.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{}))
			there.me(t, session)
		}
	}
}

// secondNode serves the database of a world once more, and gives the way there.
func (w *World) secondNode(t *testing.T) restWire {
	t.Helper()
	node := servertest.Start(t,
		server.Config{Data: server.Data{MasterKey: string(w.master.Text()), Database: w.db.URL},
			ExternalURL: "https://" + suffix}, io.Discard)
	return restWire{w.rest.client, "http://" + node.Addr().String()}
}

// sessionsLiveOn: a session that ends when it is not used lives on by what is carried out with it.
func sessionsLiveOn(t *testing.T, w *World) {
	s := w.newScene(t)
	rest := &Client{w, w.rest}
	rest.carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{SessionIdleSeconds: 3600}))
	for _, wire := range w.wires {
		c := &Client{w, wire}
		in := done[*signetv1.CreateSessionResponse](t, c, nil, signIn(s.user.LoginName, s.user.Password))
		as := &Actor{UserID: s.user.UserID, OrgID: s.org, Token: in.GetToken()}
		expires := func() time.Time {
			t.Helper()
			token, err := w.server.Store().TokenByID(t.Context(), in.GetSessionId())
			if err != nil {
				t.Fatal(err)
			}
			return event.Time(token.Expires)
		}
		// Half an hour has passed without a use.
		token, err := w.server.Store().TokenByID(t.Context(), in.GetSessionId())
		if err != nil {
			t.Fatal(err)
		}
		token.Expires -= (30 * time.Minute).Microseconds()
		w.command(t, event.Command{Decide: func(tx *event.Tx) error { tx.DropToken(token.ID); return nil }})
		w.command(t, event.Command{Decide: func(tx *event.Tx) error { tx.PutToken(*token); return nil }})

		c.refused(t, permissionDenied, as, &signetv1.GetUserRequest{UserId: s.owner.UserID})
		c.refused(t, invalid("displayName"), as, with(profile(), "displayName", ""))
		same(t, "after refusals", expires(), event.Time(token.Expires))
		c.me(t, as)
		testkit.Await(t, "it lives for an hour from its use on",
			func() bool { return time.Until(expires()) > 59*time.Minute })

		// What is over stays over.
		token.Expires = event.Micros(time.Now()) - 1
		w.command(t, event.Command{Decide: func(tx *event.Tx) error { tx.DropToken(token.ID); return nil }})
		w.command(t, event.Command{Decide: func(tx *event.Tx) error { tx.PutToken(*token); return nil }})
		c.refused(t, unauthenticated, as, &signetv1.GetMyUserRequest{})
		c.refused(t, unauthenticated, as, &signetv1.GetMyUserRequest{})
	}
}

// throttlePolicy: how many attempts are free is what the organization says, for names that exist and names that do not.
func throttlePolicy(t *testing.T, w *World) {
	w = w.timeless(t)
	s := w.newScene(t)
	(&Client{w, w.rest}).carryOut(t, s.owner, setPolicy(s.org, &signetv1.Policy{NetworkAttempts: 2}))
	for _, login := range []string{s.user.LoginName, unique("nobody") + "@" + s.domain} {
		for i, wire := range w.wires {
			a := w.send(t, wire, nil, signIn(login, "wrong"), nil)
			if i < 2 {
				a.mustBe(t, signInFailed)
				continue
			}
			a.mustBe(t, throttledAnswer)
			if !strings.Contains(a.summary(), "wait 1 s") {
				t.Errorf("%s: %s", login, a.summary())
			}
		}
	}
}
