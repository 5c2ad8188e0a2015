package api_test

import (
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
)

var mailThrottled = refused(codes.ResourceExhausted, "MAIL_THROTTLED")

// withMail starts another server, one that can send mail.
func withMail(t *testing.T, w *World) (*World, *mailtest.Sink) {
	t.Helper()
	password := w.secret("smtp")
	sink := mailtest.StartWith(t, mailtest.Options{STARTTLS: true, User: "signet", Password: password})
	sent := openWorld(t, testdb.New(t, w.db.Engine), func(c *server.Config) {
		c.SMTPURL, c.SMTPFrom, c.SMTPRoots = sink.URL, "Signet <no-reply@"+suffix+">", sink.Roots
	})
	sent.hide(password)
	for range 2 { // the founders of the first two organizations prove their addresses
		sink.Next(t)
	}
	return sent, sink
}

var linkIn = regexp.MustCompile(`https://\S+`)

// codeIn is what a mail is good for: the user and the code in its link.
func (w *World) codeIn(t *testing.T, m mailtest.Message, path string) (userID, code string) {
	t.Helper()
	u, err := url.Parse(linkIn.FindString(m.Text))
	if err != nil || u.Host != suffix || u.Scheme != "https" || u.Path != path {
		t.Fatalf("the link is %v (%v) in\n%s", u, err, m.Text)
	}
	code = u.Query().Get("code")
	if len(code) != 8 || !strings.Contains(m.HTML, code) {
		t.Errorf("the code is %q in\n%s", code, m.HTML)
	}
	w.hide(code)
	return u.Query().Get("user"), code
}

// ready gives what the probe says.
func (w *World) ready(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(string(w.raw(t, "GET", "/readyz", nil, nil, "").body))
}

// mails: a new address is sent a code, by the set-up of an organization, the creation of a user, or on request.
func mails(t *testing.T, w *World) {
	same(t, "what is missing without mail", w.ready(t), `{"status":"ok","details":{"mail":"not configured"}}`)
	if !strings.Contains(w.log.String(), "mail is not configured") {
		t.Error("the log does not say that there is no mail")
	}
	w, sink := withMail(t, w)
	s := w.scene(t)
	sink.Next(t) // the owner of the scene
	sink.Next(t) // the user
	for _, wire := range w.wires {
		c := &Client{w, wire}
		made := done[*signetv1.SetupOrganizationResponse](t, c, w.root,
			with(setup(w.secret("founder")), "human.email.email", "founder@mail.example"))
		m := sink.Next(t)
		same(t, "to", m.To, "founder@mail.example")
		userID, _ := w.codeIn(t, m, "/verify")
		same(t, "for", userID, made.GetUserId())

		as := w.signedIn(t, w.addUser(t, person{Org: s.org, Domain: s.domain, EmailVerified: true}))
		before := sink.Next(t)
		same(t, "about the token", before.Subject, "A personal access token was added")
		email := unique("mine") + "@mail.example"
		c.must(t, as, &signetv1.SetMyEmailRequest{Email: email})
		m = sink.Next(t)
		same(t, "about the change", m.Subject, "Your e-mail address was changed")
		same(t, "to the address before", m.To, before.To)
		if u, err := url.Parse(linkIn.FindString(m.Text)); err != nil || u.Path != "/restore" {
			t.Errorf("the link is %v (%v)", u, err)
		} else {
			w.hide(u.Query().Get("code"))
		}
		answer := done[*signetv1.RequestMyEmailCodeResponse](t, c, as, &signetv1.RequestMyEmailCodeRequest{})
		if life := time.Until(answer.GetExpirationDate().AsTime()); life < 59*time.Minute || life > time.Hour {
			t.Errorf("the code lives for %v", life)
		}
		m = sink.Next(t)
		same(t, "to", m.To, email)
		userID, code := w.codeIn(t, m, "/verify")
		same(t, "for", userID, as.UserID)
		c.refused(t, mailThrottled, as, &signetv1.RequestMyEmailCodeRequest{})
		c.must(t, as, &signetv1.VerifyMyEmailRequest{Code: code})
		same(t, "verified", c.me(t, as).GetHuman().GetIsEmailVerified(), true)
		c.refused(t, alreadyVerified, as, &signetv1.RequestMyEmailCodeRequest{})
		c.refused(t, noDelivery, as, &signetv1.RequestMyPhoneCodeRequest{}) // there is still no way to a phone
	}
	sink.None(t)
	same(t, "what is missing with mail", w.ready(t), `{"status":"ok"}`)
	w.noneIn(t)
}

// noneIn sees that no secret of this world is in its tables, its answers or its log.
func (w *World) noneIn(t *testing.T) {
	t.Helper()
	places := w.dump(t)
	places["the log"] = []byte(w.log.String())
	places["the answers"] = w.answers.Bytes()
	var all []string
	for s := range w.secrets {
		all = append(all, s)
	}
	for place, content := range places {
		if len(occurrences(content, all)) > 0 {
			t.Errorf("%s: there is a secret", place)
		}
	}
}

func requestReset(name string) proto.Message {
	return &signetv1.RequestPasswordResetRequest{LoginName: name}
}

func resetPassword(userID, code, password string) proto.Message {
	return &signetv1.ResetPasswordRequest{UserId: userID, Code: code, NewPassword: password}
}

// resets: who has forgotten the password gets a mail, and strangers learn nothing.
func resets(t *testing.T, w *World) {
	w, sink := withMail(t, w)
	s := w.scene(t)
	sink.Next(t)
	sink.Next(t)
	for _, wire := range w.wires {
		c := &Client{w, wire}
		as := w.addUser(t, person{Org: s.org, Domain: s.domain, EmailVerified: true})
		in := c.session(t, as)
		sink.Next(t) // about the token
		answer := c.send(t, nil, requestReset(as.LoginName))
		answer.mustBe(t, ok)
		m := sink.Next(t)
		userID, code := w.codeIn(t, m, "/reset")
		same(t, "for", userID, as.UserID)
		lax := w.addUser(t, person{Org: s.org, Domain: s.domain})
		sink.Next(t) // to prove the address, which is not proven yet
		for _, name := range []string{as.LoginName, lax.LoginName, s.robot().LoginName,
			unique("nobody") + "@" + s.domain, unique("nobody"), "x@" + unique("nowhere") + ".example"} {
			same(t, "the answer for "+name, c.send(t, nil, requestReset(name)).summary(), answer.summary())
		}
		c.refused(t, invalid("loginName"), nil, requestReset(""))
		c.refused(t, invalid("code", "newPassword", "userId"), nil, &signetv1.ResetPasswordRequest{})
		c.refused(t, invalid("newPassword"), nil, resetPassword(userID, code, strings.Repeat("x", 73)))
		c.refused(t, invalid(orgID), nil, resetPassword(userID, code, "kettle-brume"), header(orgID, s.org))

		next := w.secret("next")
		c.refused(t, invalid("code"), nil, resetPassword(lax.UserID, code, next))
		c.refused(t, invalid("code"), nil, resetPassword(userID, "22222222", next))
		before := c.me(t, as).GetDetails().GetSequence()
		d := done[*signetv1.ResetPasswordResponse](t, c, nil, resetPassword(userID, strings.ToLower(code), next))
		same(t, "sequence", d.GetDetails().GetSequence(), before+1)
		c.refused(t, invalid("code"), nil, resetPassword(userID, code, next))
		c.refused(t, unauthenticated, in, &signetv1.GetMyUserRequest{})
		c.refused(t, unauthenticated, as, &signetv1.GetMyUserRequest{})
		c.refused(t, signInFailed, nil, signIn(as.LoginName, as.Password))
		same(t, "news", sink.Next(t).Subject, "Your password was changed")
		as.Password = next
		same(t, "no change is required", c.session(t, as).MustChange, false)
	}
	sink.None(t)
	w.noneIn(t)
}

// resetOnce: of many resets at once by the same code, one counts.
func resetOnce(t *testing.T, w *World) {
	w, sink := withMail(t, w)
	as := w.addUser(t, person{Org: w.here.org, Domain: w.here.domain, EmailVerified: true})
	sink.Next(t) // about the token
	(&Client{w, w.rest}).must(t, nil, requestReset(as.LoginName))
	userID, code := w.codeIn(t, sink.Next(t), "/reset")
	const many = 64
	answers := make([]*Answer, many)
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() {
			answers[i] = w.send(t, w.wires[i%len(w.wires)], nil, resetPassword(userID, code, "kettle-brume"), nil)
		})
	}
	wait.Wait()
	good := 0
	for _, a := range answers {
		if a.status == nil {
			good++
		} else {
			a.mustBe(t, either(invalid("code"), throttledAnswer))
		}
	}
	same(t, "resets that counted", good, 1)
}
