package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/user"
)

// The tables of section 4 of the contract, and their neighbours.
var (
	emailsAccepted = []string{"a@b", "a.b+c@sub.example.org", `"john doe"@example.com`, "user@[192.0.2.1]",
		`"a\"b"@example.com`, "O'Neil!#$%&*/=?^_`{|}~-@EXAMPLE.org",
		strings.Repeat("x", 300) + "@example.org"}
	emailsRefused = []string{"a", "@", "a@", "@b", "a@b@c", "A B <a@b>", "<a@b>", "a@b, c@d", "group: a@b;",
		"a(comment)@b", "a@b(comment)", " a@b", "a@b ", "a @b", "a@ b",
		"a\t@b", "a\r\n @b", "a..b@c", ".a@b", "a.@b", "a@b.", "a@.b", "ä@b", "a@ä.example", `"a@b`, `"a"b@c`,
		"a@[1.2.3.4", "a@b c", "a;b@c", "mailto:a@b", "a@b\n"}
	phonesAccepted = []string{"+1", "+41-31-555.01(23)", "+49(0)30-12", "+1-800-555;ext=12",
		"+1;isub=12;phone-context=x", "+1;ext=1-2", "+(1)"}
	phonesRefused = []string{"1", "0041315550123", "+", "+-", "+()", "+1 2", "+41 31 555 01 23", " +1", "+1 ", "+1a",
		"+1;", "+1;ext", "+1;ext=", "+1;ext=a", "tel:+1", "++1", "+1+2",
		"+1,2", "+1/2", "+１", "+1;a=b;", "+1*", "+1#"}
)

// refusedAddressCases must not get as far as a hash, so there can be many of them.
func refusedAddressCases(_ *testing.T, w *World) (cases []Case) {
	base := setup("x")
	for _, e := range emailsRefused {
		cases = append(cases, Case{Name: "e-mail " + e, As: w.root, Req: with(base, "human.email.email", e),
			Want: invalid("human.email.email")})
	}
	for _, p := range phonesRefused {
		cases = append(cases, Case{Name: "phone " + p, As: w.root, Req: with(base, "human.phone.phone", p),
			Want: invalid("human.phone.phone")})
	}
	for _, d := range []string{"a b", " a", "a ", "a\tb", "a\nb", "a@b", "a/b", "a:b", "\x7f", "a\u0085b", "a\u00a0b",
		"a\u2003b", "a＠b", "a／b", "a：b", "\u00ad"} {
		cases = append(cases, Case{Name: "domain " + d, As: w.root, Req: with(base, "org.domain", d),
			Want: invalid("org.domain")})
	}
	return cases
}

// acceptedAddressCases take one e-mail and one phone number at a time, because each costs a hash.
func acceptedAddressCases(t *testing.T, w *World) (cases []Case) {
	if len(emailsAccepted) != len(phonesAccepted) {
		t.Fatal("keep the two lists of the same length")
	}
	c := &Client{w, w.rest}
	for i, e := range emailsAccepted {
		req := with(with(setup(w.secret("address")), "human.email.email", e), "human.phone.phone", phonesAccepted[i])
		req.Human.Email.IsEmailVerified, req.Human.Phone.IsPhoneVerified = i%2 == 0, i%2 == 1
		cases = append(cases, Case{
			Name: e[:min(len(e), 30)] + " " + phonesAccepted[i],
			As:   w.root,
			Req:  req,
			Want: ok,
			Check: func(t *testing.T, a *Answer) {
				made := a.message.(*signetv1.SetupOrganizationResponse)
				h := c.user(t, w.root, made.GetUserId(), header(orgID, made.GetOrgId())).GetHuman()
				same(t, "e-mail", h.GetEmail(), e)
				same(t, "e-mail verified", h.GetIsEmailVerified(), i%2 == 0)
				same(t, "phone", h.GetPhone(), phonesAccepted[i])
				same(t, "phone verified", h.GetIsPhoneVerified(), i%2 == 1)
			},
		})
	}
	return cases
}

// setupStory sets up organizations at the edges of all bounds and reads everything back.
func setupStory(t *testing.T, c *Client) {
	w := c.w
	// All fields at their most.
	domain := textFor("domain", 200)
	password := w.secret("long") + wide(10000)
	full := &signetv1.SetupOrganizationRequest{
		Org: &signetv1.SetupOrganizationRequest_Org{Name: wide(200), Domain: strings.ToUpper(domain)},
		Human: &signetv1.SetupOrganizationRequest_Human{
			UserName: wide(200),
			Profile: &signetv1.SetupOrganizationRequest_Human_Profile{
				FirstName:         wide(200),
				LastName:          wide(200),
				NickName:          wide(200),
				DisplayName:       wide(200),
				PreferredLanguage: wide(10),
				Gender:            signetv1.Gender_GENDER_DIVERSE,
			},
			Email: &signetv1.SetupOrganizationRequest_Human_Email{Email: "Full@Example.org", IsEmailVerified: true},
			Phone: &signetv1.SetupOrganizationRequest_Human_Phone{Phone: textFor("phone.phone", 50),
				IsPhoneVerified: true},
			Password: password,
		},
		Roles: []string{"ORG_USER_MANAGER", "ORG_SETTINGS_MANAGER", "ORG_USER_MANAGER"},
	}
	made := done[*signetv1.SetupOrganizationResponse](t, c, w.root, full)
	same(t, "prefixes", made.GetOrgId()[:4]+made.GetUserId()[:4], "org_usr_")
	same(t, "an organization owns itself", made.GetDetails().GetResourceOwner(), made.GetOrgId())
	o := c.org(t, w.root, made.GetOrgId())
	same(t, "name", o.GetName(), wide(200))
	same(t, "domain", o.GetPrimaryDomain(), domain)
	same(t, "state", o.GetState(), signetv1.Organization_STATE_ACTIVE)
	sameMessage(t, "details of the creation", made.GetDetails(), o.GetDetails())
	u := c.user(t, w.root, made.GetUserId(), header(orgID, made.GetOrgId()))
	p := full.Human.Profile
	sameMessage(t, "user", u, &signetv1.User{
		UserId:     made.GetUserId(),
		State:      signetv1.User_STATE_ACTIVE,
		UserName:   wide(200),
		LoginNames: []string{wide(200) + "@" + domain},
		Details:    u.GetDetails(),
		Type: &signetv1.User_Human_{
			Human: &signetv1.User_Human{
				Profile: &signetv1.User_Profile{
					FirstName:         p.FirstName,
					LastName:          p.LastName,
					NickName:          p.NickName,
					DisplayName:       p.DisplayName,
					PreferredLanguage: p.PreferredLanguage,
					Gender:            p.Gender,
				},
				Email: "Full@Example.org", IsEmailVerified: true, Phone: full.Human.Phone.Phone, IsPhoneVerified: true},
		},
	})
	same(t, "owner of the user", u.GetDetails().GetResourceOwner(), made.GetOrgId())

	// The long password signs in; one that differs in its last character does not.
	login := u.GetLoginNames()[0]
	in := done[*signetv1.CreateSessionResponse](t, c, nil, signIn(login, password))
	same(t, "no change is required", in.GetPasswordChangeRequired(), false)
	c.refused(t, signInFailed, nil, signIn(login, strings.TrimSuffix(password, "𝕊")+"𝕋"))
	// The roles are what was asked for, each once: users and providers, but not the organization.
	stored, err := user.Kind.Read(t.Context(), w.server.Store(), made.GetUserId())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "roles", fmt.Sprint(stored.Data.Memberships),
		fmt.Sprint(map[string][]string{made.GetOrgId(): {settingsManager, userManager}}))
	as := &Actor{Token: in.GetToken()}
	c.refused(t, permissionDenied, as, &signetv1.GetOrganizationRequest{OrgId: made.GetOrgId()})
	done[*signetv1.GetUserResponse](t, c, as, &signetv1.GetUserRequest{UserId: made.GetUserId()})
	done[*signetv1.AddJWTIdentityProviderResponse](t, c, as, addJWT())

	// All fields at their least: what is not said is empty or computed.
	small := &signetv1.SetupOrganizationRequest{
		Org: &signetv1.SetupOrganizationRequest_Org{Name: "x"},
		Human: &signetv1.SetupOrganizationRequest_Human{UserName: "y", Password: "z",
			Profile: &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: wide(200), LastName: wide(200)},
			Email:   &signetv1.SetupOrganizationRequest_Human_Email{Email: "a@b"}},
	}
	made = done[*signetv1.SetupOrganizationResponse](t, c, w.root, small)
	u = c.user(t, w.root, made.GetUserId(), header(orgID, made.GetOrgId()))
	same(t, "computed display name", u.GetHuman().GetProfile().GetDisplayName(), wide(200)+" "+wide(200))
	same(t, "its length", utf8.RuneCountInString(u.GetHuman().GetProfile().GetDisplayName()), 401)
	h := u.GetHuman()
	same(t, "the rest is empty", h.GetProfile().GetNickName()+h.GetProfile().GetPreferredLanguage()+h.GetPhone(), "")
	same(t, "nothing is verified",
		h.GetIsEmailVerified() || h.GetIsPhoneVerified() || h.GetPasswordChangeRequired(), false)
	same(t, "gender", h.GetProfile().GetGender(), signetv1.Gender_GENDER_UNSPECIFIED)
	// Without roles the user owns the organization.
	owner := &Actor{Token: done[*signetv1.CreateSessionResponse](t, c, nil,
		signIn(u.GetLoginNames()[0], "z")).GetToken()}
	c.org(t, owner, made.GetOrgId())
	done[*signetv1.AddJWTIdentityProviderResponse](t, c, owner, addJWT())
	done[*signetv1.SetUserPasswordResponse](t, c, owner, setPassword(made.GetUserId(), w.secret("own")))
}

// domainStory is about whose a domain is, and in what form it is kept.
func domainStory(t *testing.T, c *Client) {
	w := c.w
	create := func(name, domain string) (id, primary string) {
		t.Helper()
		req := setup(w.secret("domain"))
		req.Org.Name, req.Org.Domain = name, domain
		made := done[*signetv1.SetupOrganizationResponse](t, c, w.root, req)
		return made.GetOrgId(), c.org(t, w.root, made.GetOrgId()).GetPrimaryDomain()
	}
	label := unique("bücher")
	_, kept := create("Books", label+".Example")
	if !strings.HasPrefix(kept, "xn--b") || !strings.HasSuffix(kept, ".example") || strings.ToLower(kept) != kept {
		t.Errorf("%s was kept as %s", label+".Example", kept)
	}
	for _, spelling := range []string{label + ".example", strings.ToUpper(label) + ".EXAMPLE", kept,
		strings.ToUpper(kept)} {
		c.refused(t, domainTaken, w.root, with(setup("taken"), "org.domain", spelling))
	}

	name := unique("Überlingen & Söhne GmbH")
	_, first := create(name, "")
	want := strings.NewReplacer("Überlingen & Söhne GmbH", "uberlingen-sohne-gmbh").Replace(name) + "." + suffix
	same(t, "generated domain", first, want)
	_, second := create(name, "")
	if second == first || !strings.HasPrefix(second, strings.TrimSuffix(first, "."+suffix)+"-") ||
		!strings.HasSuffix(second, "."+suffix) {
		t.Errorf("the second organization of the name got %s beside %s", second, first)
	}
	_, long := create(strings.Repeat("ab-", 60), "")
	if l := strings.TrimSuffix(long, "."+suffix); len(l) > 60 || !strings.HasPrefix(l, "ab-ab") {
		t.Errorf("a long name became %s", long)
	}
	_, bare := create("日本 🙂 --", "")
	if !slices.Contains([]string{"org." + suffix}, bare) && !strings.HasPrefix(bare, "org-") {
		t.Errorf("a name without letters became %s", bare)
	}
	// Labels need not be such as DNS allows.
	odd := unique("-_.x") + "..-" + strings.Repeat("y", 80)
	_, kept = create("Odd", odd)
	same(t, "odd domain", kept, odd)
}
