package api_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	alreadyVerified = refused(codes.FailedPrecondition, "ALREADY_VERIFIED")
	nothingToVerify = refused(codes.FailedPrecondition, "NOTHING_TO_VERIFY")
	noDelivery      = refused(codes.FailedPrecondition, "CODE_DELIVERY_NOT_CONFIGURED")
)

// contact has the requests about one way to reach a person.
type contact struct {
	by            user.Contact
	first, second string
	set           func(id, to string, verified bool) proto.Message
	setMine       func(to string) proto.Message
	makeCode      func(id string) proto.Message
	sendCode      func() proto.Message
	verify        func(code string) proto.Message
	read          func(*signetv1.User) (string, bool)
}

var contacts = []contact{
	{user.ByEmail, "Ada@One.example", "ada@two.example",
		func(id, to string, v bool) proto.Message {
			return &signetv1.SetUserEmailRequest{UserId: id, Email: to, IsEmailVerified: v}
		},
		func(to string) proto.Message { return &signetv1.SetMyEmailRequest{Email: to} },
		func(id string) proto.Message { return &signetv1.CreateEmailCodeRequest{UserId: id} },
		func() proto.Message { return &signetv1.RequestMyEmailCodeRequest{} },
		func(code string) proto.Message { return &signetv1.VerifyMyEmailRequest{Code: code} },
		func(u *signetv1.User) (string, bool) {
			return u.GetHuman().GetEmail(), u.GetHuman().GetIsEmailVerified()
		}},
	{user.ByPhone, "+49-30-1", "+49-30-2;ext=3",
		func(id, to string, v bool) proto.Message {
			return &signetv1.SetUserPhoneRequest{UserId: id, Phone: to, IsPhoneVerified: v}
		},
		func(to string) proto.Message { return &signetv1.SetMyPhoneRequest{Phone: to} },
		func(id string) proto.Message { return &signetv1.CreatePhoneCodeRequest{UserId: id} },
		func() proto.Message { return &signetv1.RequestMyPhoneCodeRequest{} },
		func(code string) proto.Message { return &signetv1.VerifyMyPhoneRequest{Code: code} },
		func(u *signetv1.User) (string, bool) {
			return u.GetHuman().GetPhone(), u.GetHuman().GetIsPhoneVerified()
		}},
}

// must sends a request that succeeds.
func (c *Client) must(t *testing.T, as *Actor, req proto.Message, h ...Header) proto.Message {
	t.Helper()
	return done[proto.Message](t, c, as, req, h...)
}

// code makes a code.
func (c *Client) code(t *testing.T, as *Actor, req proto.Message) string {
	t.Helper()
	return c.must(t, as, req).(newCode).GetCode()
}

// ownScene is a scene whose user is in a session: nothing less changes one's own addresses.
func (w *World) ownScene(t *testing.T) *scene {
	t.Helper()
	own := *w.scene(t)
	own.user = w.signedIn(t, own.user)
	return &own
}

// contactStory: who sets an address, and what is known about it afterwards.
func contactStory(t *testing.T, c *Client) {
	s := c.w.ownScene(t)
	as := s.holder(t, userManager)
	for _, k := range contacts {
		shown := func(to string, verified bool) {
			t.Helper()
			for _, u := range []*signetv1.User{c.me(t, s.user), c.user(t, as, s.user.UserID)} {
				if got, is := k.read(u); got != to || is != verified {
					t.Errorf("%s: %q, verified: %t; want %q, %t", k.by, got, is, to, verified)
				}
			}
		}
		c.must(t, as, k.set(s.user.UserID, k.first, true))
		shown(k.first, true)
		c.must(t, s.user, k.setMine(k.first)) // the very same: as before
		shown(k.first, true)
		c.must(t, s.user, k.setMine(k.second))
		shown(k.second, false)
		c.must(t, as, k.set(s.user.UserID, k.second, true))
		c.must(t, as, k.set(s.user.UserID, k.second, false))
		shown(k.second, false)

		before := c.me(t, s.user).GetDetails().GetSequence()
		d := c.must(t, s.user, k.setMine(k.second)).(interface{ GetDetails() *signetv1.Details })
		same(t, "an event though nothing differs", d.GetDetails().GetSequence(), before+1)
		for _, wrong := range []string{"", "nonsense", "a b@c", "+"} {
			c.refused(t, invalid(string(k.by)), s.user, k.setMine(wrong))
			c.refused(t, invalid(string(k.by)), as, k.set(s.user.UserID, wrong, true))
		}
		c.refused(t, targetHoldsMore, as, k.set(s.owner.UserID, k.first, true))
		c.refused(t, targetHoldsMore, as, k.makeCode(s.owner.UserID))
		c.refused(t, noUser, c.w.elsewhere(t).owner, k.set(s.user.UserID, k.first, true))
		c.refused(t, noUser, c.w.elsewhere(t).owner, k.makeCode(s.user.UserID))
		c.refused(t, permissionDenied, s.user, k.set(s.user.UserID, k.first, true)) // not even one's own
		c.refused(t, permissionDenied, s.user, k.makeCode(s.user.UserID))
		c.refused(t, sequenceMismatch, as, k.set(s.user.UserID, k.first, true), stale)
		c.refused(t, sequenceMismatch, s.user, k.setMine(k.first), stale)
		c.refused(t, invalid("code"), s.user, k.verify("22222222"), stale)
		robot := c.w.addUser(t, person{Org: s.org, Service: true})
		for _, req := range []proto.Message{k.setMine(k.first), k.verify("x")} {
			c.refused(t, notHuman, robot, req)
		}
		for _, req := range []proto.Message{k.set(robot.UserID, k.first, true), k.makeCode(robot.UserID)} {
			c.refused(t, notHuman, as, req)
		}
		shown(k.second, false)
	}

	// A verified address signs in; one that changed does not.
	email := unique("Sign") + "@In.example"
	c.must(t, as, contacts[0].set(s.user.UserID, email, true))
	in := *s.user
	in.LoginName = strings.ToLower(email)
	sign := with(signIn(in.LoginName, in.Password), "orgId", s.org)
	c.must(t, nil, sign)
	c.must(t, s.user, contacts[0].setMine("other-"+email))
	c.refused(t, signInFailed, nil, sign)

	// Numbers are taken away by whoever may, and by oneself.
	remove, removeMine := &signetv1.RemoveUserPhoneRequest{UserId: s.user.UserID}, &signetv1.RemoveMyPhoneRequest{}
	c.refused(t, sequenceMismatch, as, remove, stale)
	c.refused(t, sequenceMismatch, s.user, removeMine, stale)
	c.refused(t, targetHoldsMore, as, with(remove, "userId", s.owner.UserID))
	c.must(t, as, remove)
	same(t, "phone", c.me(t, s.user).GetHuman().GetPhone(), "")
	c.must(t, as, remove) // there is none: so be it
	c.must(t, s.user, contacts[1].setMine("+1"))
	c.must(t, s.user, removeMine)
	same(t, "my phone", c.me(t, s.user).GetHuman().GetPhone(), "")
	c.refused(t, nothingToVerify, as, contacts[1].makeCode(s.user.UserID))
}

// newCode is the answer to a request for a code.
type newCode interface {
	GetCode() string
	GetExpirationDate() *timestamppb.Timestamp
}

// codeStory: a code proves an address once, and five wrong ones end it.
func codeStory(t *testing.T, c *Client) {
	s := c.w.ownScene(t)
	as := s.holder(t, userManager)
	wrongCode := invalid("code")
	for _, k := range contacts {
		verified := func(want bool) {
			t.Helper()
			if _, is := k.read(c.me(t, s.user)); is != want {
				t.Errorf("%s is verified: %t", k.by, is)
			}
		}
		code := func() string {
			t.Helper()
			made := c.must(t, as, k.makeCode(s.user.UserID)).(newCode)
			if life := time.Until(made.GetExpirationDate().AsTime()); life < 59*time.Minute || life > time.Hour {
				t.Errorf("the code lives for %v", life)
			}
			return made.GetCode()
		}
		c.must(t, s.user, k.setMine(k.first))
		before := c.me(t, s.user).GetDetails().GetSequence()
		same := func(a *Answer, as string) {
			t.Helper()
			if a.summary() != as {
				t.Errorf("the answers differ: %s, %s", a.summary(), as)
			}
		}
		answer := c.refused(t, wrongCode, s.user, k.verify("22222222")).summary() // there is none

		// A new one replaces the one before; wrong ones are answered alike.
		old, made := code(), code()
		same(c.refused(t, wrongCode, s.user, k.verify(old)), answer)
		same(c.refused(t, wrongCode, c.w.signedIn(t, s.owner), k.verify(made)), answer) // somebody else's
		if after := c.me(t, s.user).GetDetails().GetSequence(); after != before {
			t.Errorf("codes moved the user from sequence %d to %d", before, after)
		}
		for range 3 {
			same(c.refused(t, wrongCode, s.user, k.verify("wrong")), answer)
		}
		verified(false)
		c.must(t, s.user, k.verify(strings.ToLower(made)))
		verified(true)
		same(c.refused(t, wrongCode, s.user, k.verify(made)), answer) // used
		c.refused(t, alreadyVerified, as, k.makeCode(s.user.UserID))

		// Another address ends the code, also where the first one comes back.
		c.must(t, s.user, k.setMine(k.second))
		made = code()
		c.must(t, s.user, k.setMine(k.first))
		same(c.refused(t, wrongCode, s.user, k.verify(made)), answer)
		c.must(t, s.user, k.setMine(k.second))
		same(c.refused(t, wrongCode, s.user, k.verify(made)), answer)

		// Five wrong ones end it.
		made = code()
		for range 5 {
			same(c.refused(t, wrongCode, s.user, k.verify("wrong")), answer)
		}
		same(c.refused(t, wrongCode, s.user, k.verify(made)), answer)
		verified(false)
		c.must(t, s.user, k.verify(code()))
		verified(true)

		// An hour ends it. The row is as it would be then.
		c.must(t, s.user, k.setMine(k.first))
		made = code()
		c.w.expireRow(t, user.CodeRow(s.user.UserID, k.by))
		same(c.refused(t, wrongCode, s.user, k.verify(made)), answer)
		verified(false)

		// This installation cannot send codes, and makes none then: the one there is still counts.
		made = code()
		c.refused(t, noDelivery, s.user, k.sendCode())
		c.must(t, s.user, k.verify(made))
		c.refused(t, noDelivery, s.user, k.sendCode())
		c.refused(t, wrongCode, s.user, k.verify(""))
		c.refused(t, wrongCode, s.user, k.verify(strings.Repeat("2", 51)))
	}
}

// expireRow lets the time of a row be over.
func (w *World) expireRow(t *testing.T, key event.RowKey) {
	t.Helper()
	w.command(t, event.Command{Rows: []event.RowKey{key}, Decide: func(tx *event.Tx) error {
		row, err := tx.Row(key)
		if err != nil {
			return err
		}
		tx.PutRow(event.Row{RowKey: key, Value: row.Value, Expires: tx.Now()})
		return nil
	}})
}

// codeAtOnce: of many attempts at once one counts, and of many wrong ones none is forgotten.
func codeAtOnce(t *testing.T, w *World) {
	s := w.ownScene(t)
	c := &Client{w, w.rest}
	send := func(req func(i int) proto.Message) (good int) {
		t.Helper()
		const many = 64
		answers := make([]*Answer, many)
		var wait sync.WaitGroup
		for i := range many {
			wait.Go(func() { answers[i] = w.send(t, w.wires[i%len(w.wires)], s.user, req(i), nil) })
		}
		wait.Wait()
		for _, a := range answers {
			if a.status == nil {
				good++
			} else {
				a.mustBe(t, invalid("code"))
			}
		}
		return good
	}
	for _, k := range contacts {
		c.must(t, s.user, k.setMine(k.first))
		made := c.code(t, s.owner, k.makeCode(s.user.UserID))
		before := c.me(t, s.user).GetDetails().GetSequence()
		same(t, "the right code counts", send(func(int) proto.Message { return k.verify(made) }), 1)
		same(t, "events", c.me(t, s.user).GetDetails().GetSequence(), before+1)

		c.must(t, s.user, k.setMine(k.second))
		made = c.code(t, s.owner, k.makeCode(s.user.UserID))
		same(t, "a wrong code counts", send(func(int) proto.Message { return k.verify("wrong") }), 0)
		c.refused(t, invalid("code"), s.user, k.verify(made))
	}
}

// developmentCodes: on a developer's machine the code is in the log, and nowhere else.
func developmentCodes(t *testing.T, w *World) {
	dev := openWorld(t, testdb.New(t, w.db.Engine),
		func(c *server.Config) { c.ExternalURL, c.Development = "http://localhost:8080", true })
	s := dev.scene(t)
	for i, wire := range dev.wires {
		k := contacts[i%len(contacts)]
		c := &Client{dev, wire}
		// one who was not sent a code already
		s.user = dev.signedIn(t, dev.addUser(t, person{Org: s.org, Domain: s.domain, EmailVerified: true}))
		c.must(t, s.user, k.setMine(k.first))
		c.must(t, s.user, k.setMine(k.second))
		mark := len(dev.log.String())
		answer := c.must(t, s.user, k.sendCode()).(interface{ GetExpirationDate() *timestamppb.Timestamp })
		if life := time.Until(answer.GetExpirationDate().AsTime()); life < 59*time.Minute || life > time.Hour {
			t.Errorf("the code lives for %v", life)
		}
		var code string
		testkit.Await(t, "the code is in the log", func() bool {
			for line := range strings.Lines(dev.log.String()[mark:]) {
				var said struct{ Level, Msg, User, By, To, Code string }
				if err := json.Unmarshal([]byte(line),
					&said); err == nil && said.Msg == "development: verification code" && said.User == s.user.UserID {
					same(t, "what", said.By, string(k.by))
					same(t, "to", said.To, k.second)
					same(t, "level", said.Level, "INFO")
					code = said.Code
				}
			}
			return code != ""
		})
		if len(code) != 8 || len(occurrences(dev.answers.Bytes(), []string{code})) > 0 {
			t.Fatalf("the code in the log is %q, or it was answered", code)
		}
		for table, rows := range dev.dump(t) {
			if len(occurrences(rows, []string{code})) > 0 {
				t.Errorf("the code is in the table %s", table)
			}
		}
		c.must(t, s.user, k.verify(code))
		c.refused(t, alreadyVerified, s.user, k.sendCode())
	}
}
