package program

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/life/mail/mailtest"
	"github.com/signet-idm/signet/test/testkit"
)

// via is a proxy that the program trusts, and says to be in front of one address.
type via struct {
	http.RoundTripper
	address string
}

func (v via) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", v.address)
	return v.RoundTripper.RoundTrip(r)
}

// behindProxy lets the program believe via.
var behindProxy = []string{"--trusted-proxies", "127.0.0.0/8,::1/128"}

// from gives the same client at another address.
func (c *client) from(address string) *client {
	other, web := *c, *c.http
	transport := web.Transport
	if before, ok := transport.(via); ok {
		transport = before.RoundTripper
	}
	web.Transport = via{transport, address}
	other.http = &web
	return &other
}

// network is an address in the n-th of many networks.
func network(n int) string { return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255) }

// tried is what somebody who guesses sees of an answer.
func tried(t *testing.T, c *client, path string, body object) (seen string, retry time.Duration) {
	t.Helper()
	status, answer, err := c.do(t.Context(), "POST", path, body)
	if err != nil {
		t.Fatal(err)
	}
	seen = fmt.Sprint(status)
	details, _ := answer["details"].([]any)
	for _, detail := range details {
		d := detail.(object)
		if reason, ok := d["reason"].(string); ok {
			seen += " " + reason
		}
		if delay, ok := d["retryDelay"].(string); ok {
			if retry, err = time.ParseDuration(delay); err != nil {
				t.Fatal(err)
			}
		}
	}
	return seen, retry
}

// human adds a person of the default organization, with a verified address.
func human(t *testing.T, c *client, name, password string) (userID string) {
	t.Helper()
	made := c.want(t, 200, "POST", "/v1/users/human", object{
		"userName":         name,
		"password":         password,
		"noChangeRequired": true,
		"email":            object{"email": name + "@mail.example", "isEmailVerified": true},
		"profile":          object{"firstName": "First", "lastName": "Last"},
	})
	return at[string](t, made, "userId")
}

// Six wrong tries under a user name, then some under an address: whether it is the address of the same person must not
// show.
func TestAttackAFewGuessesDoNotTellWhichNamesAreOnePersons(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t, behindProxy...)
		c := newClient(t, p, s.admin(t).Token)
		human(t, c, "jo", "a password of jo")
		human(t, c, "al", "a password of al")
		guess := func(from *client, name string) string {
			seen, _ := tried(t, from.with(""), "/v1/sessions", object{"loginName": name, "password": "wrong"})
			return seen
		}
		want := slices.Repeat([]string{"401 SIGN_IN_FAILED"}, 5)
		for i, second := range []string{"jo@mail.example", "al@mail.example", "nobody@mail.example"} {
			from := c.from(network(i))
			heard := 0
			for ; guess(from, "jo") != "429 SIGN_IN_THROTTLED"; heard++ {
				if heard > 20 {
					t.Fatal("guessing is not slowed down")
				}
			}
			if heard < 5 {
				t.Errorf("jo is slowed down after %d guesses", heard)
			}
			var seen []string
			for range 5 {
				seen = append(seen, guess(from, second))
			}
			if !slices.Equal(seen, want) {
				t.Errorf("after guesses at jo, %s sees %q", second, seen)
			}
		}
	})
}

// A stranger who guesses from many networks, under all names, holds up nobody who comes from where they came in before,
// and others not for long.
func TestAttackAStrangerCannotKeepTheOwnerOut(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t, behindProxy...)
		c := newClient(t, p, s.admin(t).Token)
		human(t, c, "jo", "a password of jo")
		// The waiting time doubles from one second up to this, so a guess comes too early soon, however slow the machine is.
		const most = 8 * time.Second
		c.want(t, 200, "PUT", "/v1/policy",
			object{"policy": object{"networkAttempts": 1, "accountAttempts": 10, "accountWaitSeconds": most.Seconds()}})
		home := c.from("192.0.2.7").with("")
		home.signIn(t, "jo", "a password of jo")
		throttled := false
		for i := 0; !throttled; i++ {
			seen, retry := tried(t, c.from(network(i)).with(""), "/v1/sessions",
				object{"loginName": []string{"jo", "jo@mail.example"}[i%2], "password": "wrong"})
			throttled = strings.HasPrefix(seen, "429")
			if i > 60 || retry > most {
				t.Fatalf("guess %d from as many networks: %s, %v", i, seen, retry)
			}
		}
		// From home it is as if nobody guessed, whichever name is typed.
		home.signIn(t, "jo", "a password of jo")
		home.signIn(t, "jo@mail.example", "a password of jo")
		// From elsewhere somebody is heard who comes again after the low ceiling.
		elsewhere := c.from("198.51.100.7").with("")
		testkit.Await(t, "the owner is heard from elsewhere", func() bool {
			status, _, err := elsewhere.do(t.Context(), "POST", "/v1/sessions",
				object{"loginName": "jo", "password": "a password of jo"})
			if err != nil {
				t.Fatal(err)
			}
			return status == 200
		})
	})
}

// Somebody who has the password guesses codes from a new network each time.
func TestAttackCodesAreGuessedAFewTimesADayOverAllNetworks(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		sink := mailtest.Start(t)
		p := s.start(t, append([]string{"--smtp-url", sink.URL, "--smtp-from", "no-reply@id.example"},
			behindProxy...)...)
		c := newClient(t, p, s.admin(t).Token)
		human(t, c, "jo", "a password of jo")
		in := func(address string) *client {
			from := c.from(address)
			return from.with(from.with("").signIn(t, "jo", "a password of jo"))
		}
		prove := func(from *client, answer object) string {
			seen, _ := tried(t, from, "/v1/sessions/_prove", answer)
			return seen
		}
		home := "192.0.2.7"
		owner := in(home)
		begun := time.Now()
		secret := at[string](t, owner.want(t, 200, "POST", "/v1/users/me/factors/totp/_start", object{}), "secret")
		wrong := object{"totpCode": factortest.Wrong(begun, secret)}
		owner.want(t, 200, "POST", "/v1/users/me/factors/totp/_confirm",
			object{"code": factortest.Code(secret, begun), "name": "Phone"})
		recovery := at[[]any](t, owner.want(t, 200, "POST", "/v1/users/me/recovery_codes", object{}), "codes")
		known := object{"recoveryCode": recovery[1].(string)} // not a code of the app, which shows one in half a minute
		in(home).want(t, 200, "POST", "/v1/sessions/_prove", known)
		attacker := in(network(1))
		for i := range 10 {
			if seen := prove(attacker.from(network(1+i)), wrong); seen != "400 INVALID_REQUEST" {
				t.Fatalf("guess %d: %s", i+1, seen)
			}
		}
		for i := range 3 {
			seen, retry := tried(t, attacker.from(network(100+i)), "/v1/sessions/_prove", wrong)
			if seen != "429 SIGN_IN_THROTTLED" || retry < 23*time.Hour {
				t.Errorf("one more guess: %s, %v", seen, retry)
			}
		}
		// The owner comes in with another factor from anywhere, and with a code from home.
		if seen := prove(in(network(200)), object{"recoveryCode": recovery[0].(string)}); seen != "200" {
			t.Errorf("a recovery code: %s", seen)
		}
		next := object{"totpCode": factortest.Code(secret, begun.Add(30*time.Second))}
		if seen := prove(in(home), next); seen != "200" {
			t.Errorf("a code from home: %s", seen)
		}
		// And is told, once.
		told := 0
		for told == 0 {
			if m := sink.Next(t); m.Subject == "Wrong codes for your account" {
				told++
				if m.To != "jo@mail.example" || !strings.Contains(m.Text, network(10)) {
					t.Errorf("to %s: %s", m.To, m.Text)
				}
			}
		}
		s.run(t, "rebuild", "--check").fine(t)
	})
}
