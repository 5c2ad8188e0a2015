package setup_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/setup"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

var (
	hasher = secret.NewCheapHasher()
	iam    = permit(access.Installation, access.OrgSetup)
)

// permit is that of an owner of the installation.
func permit(scope string, p access.Permission) access.Permit {
	caller := &access.Caller{UserID: "usr_iam", Memberships: access.Memberships{access.Installation: {access.IAMOwner}}}
	permit, err := caller.In(scope, p)
	if err != nil {
		panic(err)
	}
	return permit
}

func world(t *testing.T) (*eventtest.Store, setup.Setup) {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, session.Kind, oauth.Kind, invitation.Kind)
	return s, setup.Setup{Store: s, Hasher: hasher, DomainSuffix: "id.test"}
}

func acme(change ...func(*setup.Organization)) setup.Organization {
	o := setup.Organization{
		Name:     "Acme, Inc.",
		Password: "correct horse",
		Human: user.NewHuman{UserName: "Jo", Email: "jo@example.org", EmailVerified: true,
			Profile: user.Profile{FirstName: "Jo", LastName: "Doe"}},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

var must = testkit.Must

func TestAnOrganizationComesWithItsAdministrator(t *testing.T) {
	s, set := world(t)
	done, err := set.Organization(t.Context(), iam, event.Once{}, acme())
	must(t, err)
	s.Then(t, 0,
		eventtest.Fact{Object: done.OrgID, Type: "org.added.v1",
			Payload: `{"name":"Acme, Inc.","nameKey":"acme, inc."}`},
		eventtest.Fact{Object: done.OrgID, Type: "org.domain_added.v1",
			Payload: `{"domain":"acme-inc.id.test","verified":true,"primary":true}`},
		eventtest.Fact{
			Object:  done.UserID,
			Type:    "user.human_added.v1",
			Payload: `{"emailVerified":true,"verification":{"by":"installation","at":1767323045678901}}`,
			Personal: `{"userName":"Jo",` +
				`"profile":{"firstName":"Jo","lastName":"Doe"},"email":"jo@example.org"}`,
		}, // what follows from it is left out
		eventtest.Fact{Object: done.UserID, Type: "user.password_set.v1", Payload: `{}`},
		eventtest.Fact{Object: done.UserID, Type: "user.membership_set.v1",
			Payload: `{"scope":"` + done.OrgID + `","roles":["ORG_OWNER"]}`},
	)
	o := eventtest.State(t, s, org.Kind, done.OrgID)
	if done.Details != o.Details() || done.Details.Sequence != 2 || done.Details.Org != done.OrgID ||
		!done.Details.Created.Equal(eventtest.Start) {
		t.Errorf("details %+v", done.Details)
	}
	u := eventtest.State(t, s, user.Kind, done.UserID)
	if u.Org != done.OrgID || u.Data.Password.ChangeRequired {
		t.Errorf("the user is %+v", u)
	}
	row, err := s.Row(t.Context(), user.PasswordRow(done.UserID))
	must(t, err)
	if ok, _, _ := hasher.Verify(t.Context(), row.Value, "correct horse"); !ok {
		t.Error("the password does not match")
	}
	if s.Stored(t, "correct horse") {
		t.Error("the password itself is stored")
	}
}

func TestTheDomainOfANewOrganization(t *testing.T) {
	for _, c := range []struct {
		name, orgName, domain, want string
	}{
		{"made from the name", "Überlingen GmbH", "", `^uberlingen-gmbh\.id\.test$`},
		{"made from nothing", "!!!", "", `^org\.id\.test$`},
		{"a label of 50 octets at most", strings.Repeat("a", 200), "", `^a{50}\.id\.test$`},
		{"given, in lower case", "x", "Acme.EXAMPLE", `^acme\.example$`},
		{"given, in ASCII form", "x", "Bücher.example", `^xn--bcher-kva\.example$`},
		{"given, without regard to DNS", "x", "a_b..c", `^a_b\.\.c$`},
		{"made from the name, which is taken", "Taken", "", `^taken-[a-z2-7]{6}\.id\.test$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, set := world(t)
			eventtest.Given(t, s, org.Kind, "org_taken", "org_taken", []event.Claim{org.DomainClaim("taken.id.test")},
				org.Added{Name: "Taken"}, org.DomainAdded{Domain: "taken.id.test", Verified: true, Primary: true})
			done, err := set.Organization(t.Context(), iam, event.Once{},
				acme(func(o *setup.Organization) { o.Name, o.Domain = c.orgName, c.domain }))
			must(t, err)
			o := eventtest.State(t, s, org.Kind, done.OrgID)
			if got := o.Data.PrimaryDomain(); !regexp.MustCompile(c.want).MatchString(got) ||
				!o.Data.Domains[0].Verified {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestOrganizationNamesNeedNotBeUnique(t *testing.T) {
	s, set := world(t)
	seen := map[string]bool{}
	for range 3 {
		done, err := set.Organization(t.Context(), iam, event.Once{}, acme())
		must(t, err)
		seen[eventtest.State(t, s, org.Kind, done.OrgID).Data.PrimaryDomain()] = true
	}
	if len(seen) != 3 {
		t.Errorf("domains %v", seen)
	}
}

func TestADomainThatIsTakenLeavesNothingBehind(t *testing.T) {
	for _, taken := range []string{"acme.example", "ACME.Example"} {
		t.Run(taken, func(t *testing.T) {
			s, set := world(t)
			_, err := set.Organization(t.Context(), iam, event.Once{},
				acme(func(o *setup.Organization) { o.Domain = "acme.example" }))
			must(t, err)
			before := s.Fingerprint()
			once := event.Once{Key: "k", Request: []byte("r"), Expires: event.Micros(s.Now().Add(time.Hour))}
			_, err = set.Organization(t.Context(), iam, once, acme(func(o *setup.Organization) { o.Domain = taken }))
			eventtest.As(t, err, org.ErrDomainTaken)
			if s.Fingerprint() != before {
				t.Error("something was written")
			}
		})
	}
}

func TestTheRolesOfTheFirstUser(t *testing.T) {
	for _, c := range []struct {
		name  string
		roles []string
		want  []access.Role
		wrong []string
	}{
		{"none: the owner", nil, []access.Role{access.OrgOwner}, nil},
		{"an empty list: the owner", []string{}, []access.Role{access.OrgOwner}, nil},
		{"exactly those sent", []string{"ORG_USER_MANAGER"}, []access.Role{access.OrgUserManager}, nil},
		{"repeated ones count once", []string{"ORG_USER_MANAGER", "ORG_OWNER", "ORG_USER_MANAGER"},
			[]access.Role{access.OrgOwner, access.OrgUserManager}, nil},
		{"an unknown one is named", []string{"ORG_OWNER", "ORG_EMPEROR"}, nil, []string{"roles[1]"}},
		{"the installation's are refused", []string{"IAM_OWNER", "ORG_OWNER", ""}, nil,
			[]string{"roles[0]", "roles[2]"}},
		{"in another case they are other words", []string{"org_owner"}, nil, []string{"roles[0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, set := world(t)
			done, err := set.Organization(t.Context(), iam, event.Once{},
				acme(func(o *setup.Organization) { o.Roles = c.roles }))
			if c.wrong != nil {
				eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, c.wrong...)
				s.Then(t, 0)
				return
			}
			must(t, err)
			got := eventtest.State(t, s, user.Kind, done.UserID).Data.Memberships
			if len(got) != 1 || !slices.Equal(got[done.OrgID], c.want) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	s, set := world(t)
	_, err := set.Organization(t.Context(), iam, event.Once{}, acme(func(o *setup.Organization) {
		o.Domain, o.Human.Email, o.Human.Phone, o.Roles = "a b", "nobody", "123", []string{strings.Repeat("R", 5000)}
	}))
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "org.domain", "human.email.email",
		"human.phone.phone", "roles[0]")
	if len(err.Error()) > 1000 {
		t.Errorf("the answer grows with the request: %d bytes", len(err.Error()))
	}
	s.Then(t, 0)
}

func TestManyWrongRolesAreNotAllListed(t *testing.T) {
	in := acme(func(o *setup.Organization) { o.Roles = append([]string{"ORG_OWNER"}, make([]string, 340_000)...) })
	wrong := in.Violations()
	if len(wrong) != errs.MaxViolations || wrong[0].Field != "roles[1]" ||
		wrong[len(wrong)-1].Field != fmt.Sprintf("roles[%d]", len(wrong)) {
		t.Errorf("%d violations: %+v", len(wrong), wrong[:1])
	}
	if allocated := testing.AllocsPerRun(1, func() { in.Violations() }); allocated > 10*errs.MaxViolations {
		t.Errorf("it goes on after the last one that is shown: %v allocations", allocated)
	}
	for i, v := range wrong {
		if strings.Contains(v.Message, "ORG_USER_MANAGER") != (i == 0) {
			t.Errorf("%s %s", v.Field, v.Message)
		}
	}
}

func TestDomainsThatAreRefused(t *testing.T) {
	for _, domain := range []string{"a b", "a@b", "a/b", "a:b", "a\tb", "a\u0000b", "a＠b"} {
		in := acme(func(o *setup.Organization) { o.Domain = domain })
		if wrong := in.Violations(); len(wrong) != 1 || wrong[0].Field != "org.domain" {
			t.Errorf("%q: %+v", domain, wrong)
		}
	}
}

func TestOnlyAPermitForTheInstallationSetsUp(t *testing.T) {
	s, set := world(t)
	for _, permit := range []access.Permit{{}, permit("org_a", access.OrgSetup)} {
		_, err := set.Organization(t.Context(), permit, event.Once{}, acme())
		eventtest.As(t, err, access.ErrDenied)
	}
	s.Then(t, 0)
}

func TestNothingIsSetUpByACallerWhoMayNoLongerOnceThePasswordIsHashed(t *testing.T) {
	for name, refusal := range map[string]*errs.Error{
		"still may": nil, "the credential has ended": access.ErrUnauthenticated,
		"the permission is gone": access.ErrDenied,
	} {
		t.Run(name, func(t *testing.T) {
			s, set := world(t)
			asked := 0
			p := iam.Renewing(func(context.Context) (access.Permit, error) {
				if asked++; s.Mark() != 0 {
					t.Error("the command came first")
				}
				if refusal != nil {
					return access.Permit{}, refusal
				}
				return iam, nil
			})
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := set.Organization(gone, p, event.Once{}, acme()); err == nil || asked != 0 {
				t.Errorf("asked %d times before the password was hashed (%v)", asked, err)
			}
			_, err := set.Organization(t.Context(), p, event.Once{}, acme())
			eventtest.As(t, err, refusal)
			if wrote := s.Mark() != 0; asked != 1 || wrote != (refusal == nil) {
				t.Errorf("asked %d times, wrote: %t", asked, wrote)
			}
		})
	}
}

func TestAnIdempotencyKeyGivesTheFirstAnswerAgain(t *testing.T) {
	s, set := world(t)
	expires := event.Micros(s.Now().Add(24 * time.Hour))
	mine := event.Once{Key: "me/key", Request: []byte("request 1"), Expires: expires}
	first, err := set.Organization(t.Context(), iam, mine, acme())
	must(t, err)
	kept := s.Fingerprint()

	for _, c := range []struct {
		name  string
		after time.Duration // since the first
		once  event.Once
		in    setup.Organization
		check func(*testing.T, setup.Done, error)
	}{
		{"the same request", 0, mine, acme(), func(t *testing.T, d setup.Done, err error) {
			must(t, err)
			if d.OrgID != first.OrgID || d.UserID != first.UserID || d.Details.Sequence != first.Details.Sequence ||
				!d.Details.Created.Equal(first.Details.Created) || !d.Details.Changed.Equal(first.Details.Changed) ||
				d.Details.Org != first.Details.Org {
				t.Errorf("got %+v, want %+v", d, first)
			}
		}},
		{"another request", 0, event.Once{Key: "me/key", Request: []byte("request 2"), Expires: expires}, acme(),
			func(t *testing.T, _ setup.Done, err error) {
				eventtest.Refused(t, err, errs.InvalidArgument, event.IdempotencyKeyReused, "idempotency-key")
			}},
		{"permission is asked again, by the caller's permit", 0, mine, acme(),
			func(t *testing.T, _ setup.Done, _ error) {
				_, err := set.Organization(t.Context(), permit("org_a", access.OrgSetup), mine, acme())
				eventtest.As(t, err, access.ErrDenied)
			}},
		{"the same request just before the day is over", 24*time.Hour - time.Microsecond, mine, acme(),
			func(t *testing.T, d setup.Done, err error) {
				must(t, err)
				if d.OrgID != first.OrgID {
					t.Error("a new organization was made")
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Advance(eventtest.Start.Add(c.after).Sub(s.Now()))
			d, err := set.Organization(t.Context(), iam, c.once, c.in)
			c.check(t, d, err)
			if s.Fingerprint() != kept {
				t.Error("something was written")
			}
		})
	}

	t.Run("another caller has keys of their own", func(t *testing.T) {
		d, err := set.Organization(t.Context(), iam,
			event.Once{Key: "you/key", Request: []byte("request 1"), Expires: expires}, acme())
		must(t, err)
		if d.OrgID == first.OrgID {
			t.Error("got somebody else's answer")
		}
	})
	t.Run("after a day the key is forgotten", func(t *testing.T) {
		s.Advance(eventtest.Start.Add(24 * time.Hour).Sub(s.Now()))
		d, err := set.Organization(t.Context(), iam,
			event.Once{Key: "me/key", Request: []byte("request 2"), Expires: expires + 1}, acme())
		must(t, err)
		if d.OrgID == first.OrgID {
			t.Error("got the old answer")
		}
	})
	if s.Stored(t, "correct horse") {
		t.Error("the password is stored with the request")
	}
}

func TestARefusalIsNotKept(t *testing.T) {
	s, set := world(t)
	once := event.Once{Key: "k", Request: []byte("r"), Expires: event.Micros(s.Now().Add(time.Hour))}
	claim := []event.Claim{org.DomainClaim("acme.example")}
	eventtest.Given(t, s, org.Kind, "org_x", "org_x", claim, org.Added{Name: "X"},
		org.DomainAdded{Domain: "acme.example", Verified: true})
	in := acme(func(o *setup.Organization) { o.Domain = "acme.example" })
	_, err := set.Organization(t.Context(), iam, once, in)
	eventtest.As(t, err, org.ErrDomainTaken)
	eventtest.Given(t, s, org.Kind, "org_x", "", nil, org.WasRemoved{})
	done, err := set.Organization(t.Context(), iam, once, in)
	must(t, err)
	if done.OrgID == "" {
		t.Error("no organization")
	}
}

func TestConcurrentTwinsMakeOneOrganization(t *testing.T) {
	s, set := world(t)
	once := event.Once{Key: "k", Request: []byte("r"), Expires: event.Micros(s.Now().Add(time.Hour))}
	const twins = 4
	var wg sync.WaitGroup
	answers := make([]setup.Done, twins)
	failures := make([]error, twins)
	for i := range twins {
		wg.Go(func() { answers[i], failures[i] = set.Organization(t.Context(), iam, once, acme()) })
	}
	wg.Wait()
	for i := range twins {
		if failures[i] != nil || answers[i].OrgID != answers[0].OrgID || answers[i].UserID != answers[0].UserID {
			t.Errorf("answer %d: %+v, %v", i, answers[i], failures[i])
		}
	}
	if got := s.Mark(); got != 5 {
		t.Errorf("%d events, want those of one setup", got)
	}
}

func TestConcurrentStrangersDoNotShareADomain(t *testing.T) {
	s, set := world(t)
	var wg sync.WaitGroup
	failures := make([]error, 4)
	for i := range failures {
		wg.Go(func() {
			_, failures[i] = set.Organization(t.Context(), iam, event.Once{},
				acme(func(o *setup.Organization) { o.Domain, o.Name = "acme.example", fmt.Sprint(i) }))
		})
	}
	wg.Wait()
	won := 0
	for _, err := range failures {
		if err == nil {
			won++
		} else {
			eventtest.As(t, err, org.ErrDomainTaken)
		}
	}
	if won != 1 || s.Mark() != 5 {
		t.Errorf("%d won, %d events", won, s.Mark())
	}
}

func TestACallerWhoGaveUpGetsNothingWritten(t *testing.T) {
	s, set := world(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := set.Organization(ctx, iam, event.Once{}, acme()); err == nil {
		t.Error("it was done all the same")
	}
	s.Then(t, 0)
}

func TestThePolicyOfTheInstallationCountsForTheFirstPassword(t *testing.T) {
	s, set := world(t)
	once := func(key string) event.Once {
		return event.Once{Key: key, Request: []byte("same"), Expires: event.Micros(s.Now().Add(time.Hour))}
	}
	first, err := set.Organization(t.Context(), iam, once("a"), acme())
	must(t, err)
	eventtest.Given(t, s, installation.Kind, installation.ID, first.OrgID, nil,
		installation.Added{DefaultOrg: first.OrgID},
		installation.PolicySet{Diff: policy.Policy{}.DiffTo(policy.Policy{PasswordMinLength: 20})})
	before := s.Fingerprint()
	_, err = set.Organization(t.Context(), iam, once("b"), acme())
	eventtest.Refused(t, err, errs.InvalidArgument, errs.InvalidRequest, "human.password")
	if s.Fingerprint() != before {
		t.Error("something was written")
	}
	// A repetition gets the first answer.
	again, err := set.Organization(t.Context(), iam, once("a"), acme())
	must(t, err)
	if again.OrgID != first.OrgID {
		t.Errorf("another one was set up: %s", again.OrgID)
	}
	_, err = set.Organization(t.Context(), iam, event.Once{},
		acme(func(o *setup.Organization) { o.Password = strings.Repeat("x", 20) }))
	must(t, err)
}
