package oauth

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
)

func TestRequestsThatCannotBeTrustedGoNowhere(t *testing.T) {
	for name, change := range map[string]func(*request.Ask){
		"an unknown client":              func(a *request.Ask) { a.ClientID = "app_nobody" },
		"no client":                      func(a *request.Ask) { a.ClientID = "" },
		"a client without codes":         func(a *request.Ask) { a.ClientID = "app_tv" },
		"no redirect URI":                func(a *request.Ask) { a.RedirectURI = "" },
		"a redirect URI that goes on":    func(a *request.Ask) { a.RedirectURI += "/more" },
		"another case":                   func(a *request.Ask) { a.RedirectURI = "https://SHOP.test/callback" },
		"a query that is not registered": func(a *request.Ask) { a.RedirectURI += "?next=https://evil.test" },
		"somebody else's address":        func(a *request.Ask) { a.RedirectURI = "https://evil.test/callback" },
	} {
		t.Run(name, func(t *testing.T) {
			a := ask("app_spa", "openid")
			change(&a)
			began, err := newWorld(t).Begin(t.Context(), a)
			if err == nil || began.ID != "" || began.Refused.Address != "" {
				t.Errorf("got %+v, %v", began, err)
			}
		})
	}
}

func TestRequestsThatAreRefusedGoBackWithAWord(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*request.Ask)
		want   string
	}{
		{"implicit", func(a *request.Ask) { a.ResponseType = "token" }, "unsupported_response_type"},
		{"hybrid", func(a *request.Ask) { a.ResponseType = "code id_token" }, "unsupported_response_type"},
		{"another response mode", func(a *request.Ask) { a.ResponseMode = "web_message" }, "invalid_request"},
		{"a request object", func(a *request.Ask) { a.Request = "e30.e30." }, "request_not_supported"},
		{"no challenge without a secret", func(a *request.Ask) { a.CodeChallenge, a.CodeChallengeMethod = "", "" },
			"invalid_request"},
		{"a plain challenge", func(a *request.Ask) { a.CodeChallengeMethod = "plain" }, "invalid_request"},
		{"a challenge of no method, which means plain", func(a *request.Ask) { a.CodeChallengeMethod = "" },
			"invalid_request"},
		{"a challenge that is none", func(a *request.Ask) { a.CodeChallenge = "short" }, "invalid_request"},
		{"silence and a page", func(a *request.Ask) { a.Prompt = "none login" }, "invalid_request"},
		{"an unknown prompt", func(a *request.Ask) { a.Prompt = "shout" }, "invalid_request"},
		{"a negative age", func(a *request.Ask) { a.MaxAge = "-1" }, "invalid_request"},
		{"two organizations", func(a *request.Ask) {
			a.Scope = "openid urn:signet:org:id:org_a urn:signet:org:id:org_b"
		}, "invalid_scope"},
		{"an unknown domain", func(a *request.Ask) { a.Scope = "openid urn:signet:org:domain:nobody.test" },
			"invalid_scope"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := ask("app_spa", "openid")
			tt.change(&a)
			began, err := newWorld(t).Begin(t.Context(), a)
			must(t, err)
			if began.ID != "" || !strings.HasPrefix(began.Refused.Address, callback+"?") {
				t.Fatalf("got %+v", began)
			}
			q := parameters(t, began.Refused.Address)
			if q.Get("error") != tt.want || q.Get("state") != "st" || q.Get("iss") != issuer {
				t.Errorf("got %v", q)
			}
		})
	}
}

func TestAnswersComeInTheModeThatWasAskedFor(t *testing.T) {
	for _, mode := range []string{"", "query", "fragment", "form_post"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			in := w.signIn("usr_a")
			// read takes an answer apart, and checks that it goes to the registered address alone.
			read := func(a request.Answer) url.Values {
				t.Helper()
				u, err := url.Parse(a.Address)
				must(t, err)
				parameters := a.Form
				switch mode {
				case "fragment":
					parameters, err = url.ParseQuery(u.EscapedFragment())
					must(t, err)
					u.Fragment = ""
				case "", "query":
					parameters, u.RawQuery = u.Query(), ""
				}
				if u.String() != callback || (a.Form != nil) != (mode == "form_post") ||
					parameters.Get("state") != "s t&#" || parameters.Get("iss") != issuer {
					t.Errorf("got %+v", a)
				}
				return parameters
			}
			a := ask("app_spa", "openid")
			a.ResponseMode, a.State = mode, "s t&#"
			to, err := w.Approve(t.Context(), w.begin(a), browser, in, nil)
			must(t, err)
			got := read(to)
			if len(got) != 3 {
				t.Errorf("got %v", got)
			}
			_, err = w.exchange("app_spa", got.Get("code"))
			must(t, err)
			to, err = w.Refuse(t.Context(), w.begin(a), browser, ErrAccessDenied)
			must(t, err)
			if got := read(to); got.Get("error") != "access_denied" || got.Get("error_description") == "" ||
				got.Get("code") != "" {
				t.Errorf("got %v", got)
			}
			// A refusal at once, in the same way; PKCE is not optional in any of them.
			a.CodeChallenge, a.CodeChallengeMethod = "", ""
			began, err := w.Begin(t.Context(), a)
			must(t, err)
			if got := read(began.Refused); got.Get("error") != "invalid_request" || began.ID != "" {
				t.Errorf("got %+v", began)
			}
			a.RedirectURI = "https://evil.test/callback"
			if began, err := w.Begin(t.Context(), a); err == nil || began.Refused.Address != "" ||
				began.Refused.Form != nil {
				t.Errorf("an address that is not registered: %+v", began)
			}
		})
	}
}

func TestNobodyPostsToAPrivateScheme(t *testing.T) {
	a := request.Ask{ResponseType: "code", RedirectURI: "com.example.app:/callback", ResponseMode: "form_post"}
	if err := a.Parameters(); err == nil || a.ModeBack() != "" {
		t.Errorf("got %v, back by %q", err, a.ModeBack())
	}
	a.ResponseMode = "fragment"
	if must(t, a.Parameters()); a.ModeBack() != "fragment" {
		t.Errorf("back by %q", a.ModeBack())
	}
}

func TestAClientWithASecretMayLeaveTheChallengeOut(t *testing.T) {
	w := newWorld(t)
	a := ask("app_web", "openid")
	a.CodeChallenge, a.CodeChallengeMethod = "", ""
	code := w.code(a, w.signIn("usr_a"))
	_, err := w.exchange("app_web", code) // with a verifier: somebody took the challenge out
	wants(t, err, ErrInvalidGrant)
	_, err = w.Exchange(t.Context(), w.client("app_web"), Code{Text: code, RedirectURI: callback})
	must(t, err)
}

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		name         string
		asked, api   []string
		offline      bool
		want         []string
		wantAudience []string
	}{
		{"sorted, each once", []string{"profile", "openid", "openid"}, nil, false, sorted("openid", "profile"),
			[]string{"app_spa"}},
		{"unknown ones are left out", []string{"openid", "admin", "signet.everything", "urn:signet:app:x"}, nil, false,
			[]string{"openid"}, []string{"app_spa"}},
		{"offline access only with refresh tokens", []string{"offline_access"}, nil, false, nil, []string{"app_spa"}},
		{"offline access", []string{"offline_access"}, nil, true, []string{"offline_access"}, []string{"app_spa"}},
		{"Signet's API only as far as allowed", []string{"signet.self", "signet.write"}, []string{"signet.self"}, false,
			[]string{"signet.self"}, []string{"app_spa", issuer}},
		{"another application", []string{"urn:signet:app:app_web:aud"}, nil, false,
			[]string{"urn:signet:app:app_web:aud"}, []string{"app_spa", "app_web"}},
		{"an application of another organization, for everybody or not", []string{"urn:signet:app:app_all:aud"}, nil,
			false, nil, []string{"app_spa"}},
		{"an application that is none", []string{"urn:signet:app:app_none:aud"}, nil, false, nil, []string{"app_spa"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			aud, kept, err := newWorld(t).meantFor(t.Context(), "app_spa", "org_a",
				askable(tt.asked, tt.api, tt.offline))
			must(t, err)
			if !slices.Equal(kept, tt.want) || !slices.Equal(aud, tt.wantAudience) {
				t.Errorf("got %q for %q", kept, aud)
			}
		})
	}
}

func TestNeedsAndApproveAgree(t *testing.T) {
	always := func(*world) {}
	for _, tt := range []struct {
		name    string
		who     string
		ask     func(*request.Ask)
		since   func(*world) // after the sign-in, before the request
		need    Need
		err     error
		refused error // by Approve
	}{
		{"nothing", "usr_a", func(*request.Ask) {}, always, NeedsNothing, nil, nil},
		{"another organization", "usr_b", func(*request.Ask) {}, always, NeedsOtherAccount, nil, ErrWrongOrg},
		{"another organization, where all may, but are asked", "usr_a", func(a *request.Ask) { a.ClientID = "app_all" },
			always, NeedsConsent, nil, ErrConsentRequired},
		{"the own organization, where all may", "usr_b", func(a *request.Ask) { a.ClientID = "app_all" }, always,
			NeedsNothing, nil, nil},
		{"bound to another organization", "usr_a",
			func(a *request.Ask) { a.ClientID, a.Scope = "app_all", "openid urn:signet:org:id:org_b" }, always,
			NeedsOtherAccount, nil, ErrWrongOrg},
		{"bound by a domain", "usr_a",
			func(a *request.Ask) { a.ClientID, a.Scope = "app_all", "openid urn:signet:org:domain:B.test" }, always,
			NeedsOtherAccount, nil, ErrWrongOrg},
		{"bound to the own organization", "usr_a",
			func(a *request.Ask) { a.Scope = "openid urn:signet:org:domain:a.test" }, always, NeedsNothing, nil, nil},
		{"signing in anew", "usr_a", func(a *request.Ask) { a.Prompt = "login" },
			func(w *world) { w.store.Advance(time.Second) }, NeedsSignIn, nil, ErrLoginRequired},
		{"a sign-in that is too old", "usr_a", func(a *request.Ask) { a.MaxAge = "60" },
			func(w *world) { w.store.Advance(61 * time.Second) }, NeedsSignIn, nil, ErrLoginRequired},
		{"a sign-in that is young enough", "usr_a", func(a *request.Ask) { a.MaxAge = "60" },
			func(w *world) { w.store.Advance(60 * time.Second) }, NeedsNothing, nil, nil},
		{"a sign-in before one that has to be new", "usr_a", func(a *request.Ask) { a.MaxAge = "0" },
			func(w *world) { w.store.Advance(time.Microsecond) }, NeedsSignIn, nil, ErrLoginRequired},
		{"the person that is meant", "usr_a", func(a *request.Ask) { a.Subject = "usr_a" }, always,
			NeedsNothing, nil, nil},
		{"somebody else than is meant", "usr_a", func(a *request.Ask) { a.Subject = "usr_b" }, always, NeedsOtherPerson,
			nil, ErrLoginRequired},
		{"somebody who is not known any more", "usr_a", func(a *request.Ask) { a.Unknown = true }, always,
			NeedsNothing, nil, nil},
		{"consent", "usr_a", func(a *request.Ask) { a.ClientID = "app_asks" }, always, NeedsConsent, nil,
			ErrConsentRequired},
		{"consent to scopes that open ways in", "usr_a",
			func(a *request.Ask) { a.Scope = "openid signet.write signet.passwords" }, func(w *world) {
				w.change("app_spa", app.APIAccessSet{Scopes: []string{"signet.passwords", "signet.write"}})
			}, NeedsConsent, nil, ErrConsentRequired},
		{"no consent to general scopes", "usr_a", func(a *request.Ask) { a.Scope = "openid signet.self signet.write" },
			func(w *world) {
				w.change("app_spa",
					app.APIAccessSet{Scopes: []string{"signet.passwords", "signet.self", "signet.write"}})
			}, NeedsNothing, nil, nil},
		{"the person that is meant by a claim", "usr_a",
			func(a *request.Ask) { a.Claims = `{"id_token":{"sub":{"value":"usr_a"}}}` }, always,
			NeedsNothing, nil, nil},
		{"somebody else than is meant by a claim", "usr_a",
			func(a *request.Ask) { a.Claims = `{"id_token":{"sub":{"value":"usr_b"}}}` }, always, NeedsOtherPerson, nil,
			ErrLoginRequired},
		{"a second factor", "usr_a", func(a *request.Ask) {
			a.Claims = `{"id_token":{"acr":{"essential":true,"value":"` + claimset.MultiFactor + `"}}}`
		}, always, NeedsFactor, nil, ErrUnmetAuthentication},
		{"consent on request", "usr_a", func(a *request.Ask) { a.Prompt = "consent" }, always, NeedsConsent, nil,
			ErrConsentRequired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			in := w.signIn(tt.who)
			tt.since(w)
			a := ask("app_spa", "openid")
			tt.ask(&a)
			id := w.begin(a)
			p, err := w.Pending(t.Context(), id, browser)
			must(t, err)
			unmet, err := w.Needs(t.Context(), p, in)
			need := unmet.Need()
			if need != tt.need || !isOrNil(err, tt.err) {
				t.Errorf("it needs %q, %v", need, err)
			}
			to, err := w.Approve(t.Context(), id, browser, in, nil)
			if !isOrNil(err, tt.refused) || (to.Address == "") == (tt.refused == nil) {
				t.Errorf("approved: %q, %v", to, err)
			}
		})
	}
}

// An application that only one organization's people can use is bound to it as if the scope said so, on pages and on
// devices. It is not shown in the scopes, and what has begun stays as it began.
func TestAnApplicationOfOneOrganizationIsBoundToIt(t *testing.T) {
	w := newWorld(t)
	pending := func(id string) *Pending {
		p, err := w.Pending(t.Context(), id, browser)
		must(t, err)
		return p
	}
	for _, tt := range []struct {
		name, client, scope, want string
		given                     app.RoleSettings
	}{
		{"its own people only", "app_spa", "openid", "org_a", app.RoleSettings{}},
		{"a scope names another", "app_spa", "openid urn:signet:org:id:org_b", "org_b", app.RoleSettings{}},
		{"guests may", "app_spa", "openid", "", app.RoleSettings{Project: "prj_p"}},
		{"all organizations may", "app_all", "openid", "", app.RoleSettings{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.change(tt.client, app.RoleSettingsSet{RoleSettings: tt.given})
			p := pending(w.begin(ask(tt.client, tt.scope)))
			if p.Request.Org != tt.want || !slices.Equal(p.Scopes, strings.Fields(tt.scope)) ||
				(p.Org == nil) != (tt.want == "") {
				t.Errorf("bound to %q, with the scopes %v", p.Request.Org, p.Scopes)
			}
		})
	}

	w.change("app_tv", app.RoleSettingsSet{})
	d, err := w.BeginDevice(t.Context(), w.client("app_tv"), []string{"openid"})
	must(t, err)
	p, err := w.DeviceByUserCode(t.Context(), home, d.UserCode)
	must(t, err)
	if p.Org == nil || p.Org.ID != "org_a" || !slices.Equal(p.Scopes, []string{"openid"}) {
		t.Errorf("a device is bound to %v, with the scopes %v", p.Org, p.Scopes)
	}

	w.change("app_spa", app.RoleSettingsSet{})
	before := w.begin(ask("app_spa", "openid"))
	w.change("app_spa", app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: "prj_p"}})
	if bound := pending(before).Request.Org; bound != "org_a" {
		t.Errorf("what had begun is bound to %q", bound)
	}
}

func TestAProofThatWasGivenSinceTheRequestIsYoungEnough(t *testing.T) {
	for _, age := range []string{"0", "1", "60"} {
		w := newWorld(t)
		a := ask("app_spa", "openid")
		a.MaxAge = age
		id := w.begin(a)
		in := w.signIn("usr_a")
		w.store.Advance(5 * time.Minute) // on the other pages
		p, err := w.Pending(t.Context(), id, browser)
		must(t, err)
		if unmet, err := w.Needs(t.Context(), p, in); err != nil || unmet != NothingUnmet {
			t.Errorf("max_age=%s: it needs %q, %v", age, unmet.Need(), err)
		}
		_, err = w.Approve(t.Context(), id, browser, in, nil)
		must(t, err)
	}
}

func isOrNil(err, want error) bool {
	if want == nil {
		return err == nil
	}
	e, ok := err.(interface{ Is(error) bool })
	return ok && e.Is(want)
}

func TestOnlyAFullSessionApproves(t *testing.T) {
	for name, change := range map[string]func(w *world, in *session.Bearer){
		"a session that was ended": func(w *world, in *session.Bearer) {
			must(w.t, w.Sessions.End(w.t.Context(), session.Own(in.Caller), in.Token.ID))
		},
		"a session of before all were ended": func(w *world, _ *session.Bearer) {
			w.change("usr_a", user.SessionsEnded{})
		},
		"a user who is switched off": func(w *world, _ *session.Bearer) {
			w.change("usr_a", user.Deactivated{})
		},
		"a user of an organization that is": func(w *world, _ *session.Bearer) {
			w.change("org_a", org.Deactivated{})
		},
		"a session that has expired": func(w *world, _ *session.Bearer) { w.store.Advance(13 * time.Hour) },
		"a personal access token":    func(_ *world, in *session.Bearer) { in.Token.Kind = "pat" },
		"a session that must change a password": func(_ *world, in *session.Bearer) {
			in.Caller.MustChangePassword = true
		},
		"a session that must prove a factor": func(_ *world, in *session.Bearer) {
			in.Caller.MustProveSecondFactor = true
		},
		"somebody else's session": func(w *world, in *session.Bearer) {
			in.Caller.TokenID = w.signIn("usr_b").Token.ID
		},
		"a session that is gone from the tables": func(_ *world, in *session.Bearer) { in.Caller.TokenID = "ses_gone" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.signIn("usr_a")
			if strings.Contains(name, "expired") { // the request itself lives shorter
				change(w, in)
			}
			id := w.begin(ask("app_all", "openid"))
			if !strings.Contains(name, "expired") {
				change(w, in)
			}
			_, err := w.Approve(t.Context(), id, browser, in, nil)
			wants(t, err, access.ErrUnauthenticated)
		})
	}
}

func TestARequestBelongsToOneBrowserAndIsAnsweredOnce(t *testing.T) {
	w := newWorld(t)
	in := w.signIn("usr_a")
	id := w.begin(ask("app_spa", "openid"))
	for _, other := range []string{"", "another browser"} {
		_, err := w.Pending(t.Context(), id, other)
		wants(t, err, ErrRequestNotFound)
		_, err = w.Approve(t.Context(), id, other, in, nil)
		wants(t, err, ErrRequestNotFound)
		_, err = w.Refuse(t.Context(), id, other, ErrAccessDenied)
		wants(t, err, ErrRequestNotFound)
	}
	_, err := w.Approve(t.Context(), id, browser, in, nil)
	must(t, err)
	_, err = w.Approve(t.Context(), id, browser, in, nil)
	wants(t, err, ErrRequestNotFound)

	id = w.begin(ask("app_spa", "openid"))
	to, err := w.Refuse(t.Context(), id, browser, ErrAccessDenied)
	must(t, err)
	if q := parameters(t, to.Address); q.Get("error") != "access_denied" || q.Get("state") != "st" ||
		q.Get("code") != "" {
		t.Errorf("sent to %s", to)
	}
	_, err = w.Approve(t.Context(), id, browser, in, nil)
	wants(t, err, ErrRequestNotFound)

	id = w.begin(ask("app_spa", "openid"))
	w.store.Advance(requestLife)
	_, err = w.Approve(t.Context(), id, browser, in, nil)
	wants(t, err, ErrRequestNotFound)
}

func TestConsent(t *testing.T) {
	w := newWorld(t)
	in := w.signIn("usr_a")
	approve := func(scopes string, consented []string) []string {
		t.Helper()
		to, err := w.Approve(t.Context(), w.begin(ask("app_asks", scopes)), browser, in, consented)
		must(t, err)
		made, err := w.exchange("app_asks", parameters(t, to.Address).Get("code"))
		must(t, err)
		return made.Scopes
	}
	need := func(scopes string) Need {
		t.Helper()
		p, err := w.Pending(t.Context(), w.begin(ask("app_asks", scopes)), browser)
		must(t, err)
		unmet, err := w.Needs(t.Context(), p, in)
		must(t, err)
		return unmet.Need()
	}
	// Agreeing to more than was asked for gives no more; to less, less.
	if got := approve("openid email", []string{"openid", "phone"}); !slices.Equal(got, []string{"openid"}) {
		t.Errorf("given %q", got)
	}
	if need("openid") != NeedsNothing || need("openid email") != NeedsConsent {
		t.Error("what was not agreed to has to be asked for, and nothing else")
	}
	approve("openid email", []string{"openid", "email"})
	if need("openid email") != NeedsNothing {
		t.Error("what was agreed to is asked for again")
	}
	list, err := w.Consents(t.Context(), in.Caller)
	must(t, err)
	if len(list) != 1 || list[0].AppID != "app_asks" || list[0].Name != "asks" ||
		!slices.Equal(list[0].Scopes, sorted("email", "openid")) {
		t.Errorf("listed %+v", list)
	}

	// An application that needs no consent is listed, but that was no consent: it is asked for once the application
	// needs it.
	w.tokens("app_spa", "usr_a", "openid")
	c, err := Kind.Read(t.Context(), w.store, IDFor("usr_a"))
	must(t, err)
	if given := c.Data.Apps["app_spa"]; given.Asked || given.Since == 0 || given.covers([]string{"openid"}, 0) {
		t.Errorf("given %+v", given)
	}
}

func TestWithdrawingEndsEverythingThatWasGiven(t *testing.T) {
	w := newWorld(t)
	in := w.signIn("usr_a")
	short, long := w.tokens("app_spa", "usr_a", "openid"), w.tokens("app_spa", "usr_a", "openid offline_access")
	other := w.tokens("app_jwt", "usr_a", "openid")
	onItsWay := w.code(ask("app_spa", "openid"), in)
	must(t, w.Withdraw(t.Context(), in.Caller, "app_spa"))
	if w.counts(short.Access) || w.counts(long.Access) || !w.counts(other.Access) {
		t.Error("the wrong tokens are left")
	}
	_, err := w.Refresh(t.Context(), w.client("app_spa"), long.Refresh, nil)
	wants(t, err, ErrInvalidGrant)
	_, err = w.exchange("app_spa", onItsWay)
	wants(t, err, ErrInvalidGrant)
	wants(t, w.Withdraw(t.Context(), in.Caller, "app_spa"), ErrConsentNotFound)

	// Given again, it is another consent: what came from the first stays dead.
	w.tokens("app_spa", "usr_a", "openid offline_access")
	_, err = w.Refresh(t.Context(), w.client("app_spa"), long.Refresh, nil)
	wants(t, err, ErrInvalidGrant)
}

func TestWhatAnApplicationSendsAlongIsReadableForItsBrowserOnly(t *testing.T) {
	w := newWorld(t)
	a := ask("app_spa", "openid")
	a.LoginHint, a.State = "jo@people.example", "for jo@people.example"
	began, err := w.Begin(t.Context(), a)
	must(t, err)
	id, err := w.BeginLogout(t.Context(), Logout{Client: "app_spa"}, browser, "", "")
	must(t, err)
	for _, key := range []event.RowKey{requests.Key(began.ID), logouts.Key(id)} {
		row, err := w.store.Row(t.Context(), key)
		must(t, err)
		for _, text := range []string{"people", "app_spa"} {
			if strings.Contains(string(row.Value), text) {
				t.Errorf("%s holds %q", key.Key, row.Value)
			}
		}
	}
	p, err := w.Pending(t.Context(), began.ID, browser)
	must(t, err)
	if p.LoginHint != a.LoginHint || p.State != a.State {
		t.Errorf("got %+v", p.Request)
	}
	_, err = w.Pending(t.Context(), began.ID, "another browser")
	wants(t, err, ErrRequestNotFound)
	_, err = w.PendingLogout(t.Context(), id, "another browser")
	wants(t, err, ErrRequestNotFound)
	_, err = w.PendingLogout(t.Context(), began.ID, browser) // a row of another kind
	wants(t, err, ErrRequestNotFound)
}

func TestNoSecretIsInTheLog(t *testing.T) {
	w := newWorld(t)
	code := w.code(ask("app_spa", "openid offline_access"), w.signIn("usr_a"))
	made, err := w.exchange("app_spa", code)
	must(t, err)
	events, err := w.store.Events(t.Context(), 0, 1000)
	must(t, err)
	for _, e := range events {
		for _, s := range []string{code, made.Access, made.Refresh} {
			if strings.Contains(string(e.Payload), s) {
				t.Errorf("%s holds a secret", e.Type)
			}
		}
	}
	for _, key := range []event.RowKey{requests.Key(code), codes.Key(code), refreshTokens.Key(made.Refresh)} {
		if row, _ := w.store.Row(t.Context(), key); row != nil {
			t.Errorf("%s is stored in the clear", key.Key)
		}
	}
}
