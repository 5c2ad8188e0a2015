package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// floorKind says what an operation is compared with.
type floorKind string

const (
	writeFloor floorKind = "event + row"
	hashFloor  floorKind = "argon2id"
	readFloor  floorKind = "row by key"
	noFloor    floorKind = ""
)

// operation is one kind of call that is measured.
type operation struct {
	name     string
	floor    floorKind
	call     func(w *world, i int) call // of the i-th caller
	httpOnly bool                       // it has no gRPC
	// measured with the fewest and the most callers only, so that a whole run ends in time
	ends bool

	// steps make an operation of several requests, each of which needs the answer to the one before; nil: it is one
	// call.
	steps func(w *world, i int) func(conn *restConn) error
}

// speaks tells whether an operation can be called over a protocol.
func (op *operation) speaks(protocol string) bool { return protocol == "rest" || !op.httpOnly }

var operations = append([]*operation{
	{name: "UpdateMyProfile", floor: writeFloor,
		call: func(w *world, i int) call { return updateMyProfile(&w.people[i]) }},
	{name: "UpdateJWTIDP", floor: writeFloor, call: func(w *world, i int) call {
		p := &w.people[i]
		return call{token: p.token, verb: "PUT", path: "/v1/idps/" + p.idp + "/jwt_config",
			procedure: "signet.v1.IdentityProviderService/UpdateJWTIdentityProvider",
			message: &signetv1.UpdateJWTIdentityProviderRequest{
				IdpId:        p.idp,
				JwtEndpoint:  "https://login.example.org/token/" + changing,
				Issuer:       "https://login.example.org/" + changing,
				KeysEndpoint: "https://login.example.org/keys",
				HeaderName:   "x-token",
			}}
	}},
	{name: "UpdateIDP", floor: writeFloor, call: func(w *world, i int) call {
		p := &w.people[i]
		return call{token: p.token, verb: "PUT", path: "/v1/idps/" + p.idp,
			procedure: "signet.v1.IdentityProviderService/UpdateIdentityProvider",
			message: &signetv1.UpdateIdentityProviderRequest{IdpId: p.idp, Name: "Example " + changing,
				StylingType: signetv1.StylingType_STYLING_TYPE_GOOGLE, AutoRegister: true}}
	}},
	{name: "ModifyOIDCIDP", floor: writeFloor, ends: true, call: func(w *world, i int) call {
		p := &w.people[i]
		return call{token: p.token, verb: "PATCH", path: "/v1/idps/" + p.oidc,
			procedure: "signet.v1.IdentityProviderService/ModifyIdentityProvider",
			message: &signetv1.ModifyIdentityProviderRequest{
				IdpId:      p.oidc,
				Oidc:       &signetv1.ModifyIdentityProviderRequest_OIDC{ClientId: "client " + changing},
				UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"oidc.client_id"}},
			}}
	}},
	{name: "ListIDPs", floor: readFloor, ends: true, call: func(w *world, i int) call {
		return call{token: w.people[i].token, verb: "GET", path: "/v1/idps?pageSize=50",
			procedure: "signet.v1.IdentityProviderService/ListIdentityProviders",
			message:   &signetv1.ListIdentityProvidersRequest{PageSize: 50}}
	}},
	{name: "SetupOrganization", floor: hashFloor,
		call: func(w *world, _ int) call { return setupOrganization(w.admin, "", "Example "+changing) }},
	{name: "SetUserPassword", floor: hashFloor, call: func(w *world, i int) call {
		t := &w.targets[i] // never a caller: a password that is set ends the sessions of its user
		return call{token: w.admin, org: t.org, verb: "POST", path: "/v1/users/" + t.user + "/password",
			procedure: "signet.v1.UserService/SetUserPassword",
			message:   &signetv1.SetUserPasswordRequest{UserId: t.user, Password: password, NoChangeRequired: true}}
	}},
	{name: signIn, floor: hashFloor, call: func(w *world, i int) call { return createSession(&w.people[i]) }},
	{name: myself, floor: readFloor, call: func(w *world, i int) call {
		return call{token: w.people[i].token, verb: "GET", path: "/v1/users/me",
			procedure: "signet.v1.UserService/GetMyUser", message: &signetv1.GetMyUserRequest{}}
	}},
	{name: "GetUser", floor: readFloor, call: func(w *world, i int) call {
		p := &w.people[i]
		return call{token: p.token, verb: "GET", path: "/v1/users/" + p.user,
			procedure: "signet.v1.UserService/GetUser", message: &signetv1.GetUserRequest{UserId: p.user}}
	}},
	{name: "ClientCredentials", floor: writeFloor,
		call: func(w *world, i int) call { return w.people[i].robot.token() }, httpOnly: true},
	{name: "Introspect", floor: readFloor, call: func(w *world, i int) call { return w.people[i].introspect() },
		httpOnly: true},
	{name: "UserInfo", floor: readFloor, call: func(w *world, i int) call {
		return call{token: w.people[i].access, verb: "GET", path: "/oauth/userinfo"}
	}, httpOnly: true},
	{name: "ThroughJWT", floor: writeFloor, steps: throughPortal, httpOnly: true},
	{name: listFew, floor: noFloor, call: func(w *world, _ int) call { return listUsers(&w.few, "") }},
	{name: listMany, floor: noFloor, call: func(w *world, _ int) call { return listUsers(&w.many, "") }},
	{name: namedFew, floor: noFloor,
		call: func(w *world, _ int) call { return listUsers(&w.few, "johanna beispiel 0005") }},
	{name: namedMany, floor: noFloor,
		call: func(w *world, _ int) call { return listUsers(&w.many, "johanna beispiel 0005") }},
}, slices.Concat(searchOperations(), groupOperations())...)

// The names of lists: of 50 users in organizations of very different size.
const (
	listFew   = "ListUsers 1k"
	listMany  = "ListUsers 200k"
	namedFew  = "ListUsers by name 1k"
	namedMany = "ListUsers by name 200k"
)

// searches are what is searched for: a word that everybody has, of whom 50 are given; and two words that half of all
// have each, and five have both.
var searches = []struct{ name, query string }{{"one word", "beispiel"}, {"two words", oddWord + " " + evenWord}}

// sizes are the organizations that are searched in, the smallest first.
var sizes = []struct {
	name string
	who  func(w *world) *person
}{
	{"1k", func(w *world) *person { return &w.few }},
	{"24k", func(w *world) *person { return &w.some }},
	{"200k", func(w *world) *person { return &w.many }},
}

// searching is the name of a search in an organization.
func searching(search, size string) string { return "SearchUsers " + search + " " + size }

func searchOperations() (all []*operation) {
	for _, s := range searches {
		for _, in := range sizes {
			all = append(all, &operation{name: searching(s.name, in.name), ends: true, httpOnly: true,
				call: func(w *world, _ int) call { return searchUsers(in.who(w), s.query) }})
		}
	}
	return all
}

func listUsers(p *person, name string) call {
	return call{token: p.token, verb: "GET", path: "/v1/users?pageSize=50&name=" + url.QueryEscape(name),
		procedure: "signet.v1.UserService/ListUsers", message: &signetv1.ListUsersRequest{PageSize: 50, Name: name}}
}

func operationNames(all []*operation) []string {
	names := make([]string, len(all))
	for i, op := range all {
		names[i] = op.name
	}
	return names
}

func operationNamed(name string) *operation {
	for _, op := range operations {
		if op.name == name {
			return op
		}
	}
	return nil
}

const password = "correct horse battery staple"

func updateMyProfile(p *person) call {
	nick := "nick " + changing
	return call{
		token:     p.token,
		verb:      "PUT",
		path:      "/v1/users/me/profile",
		procedure: "signet.v1.UserService/UpdateMyProfile",
		message: &signetv1.UpdateMyProfileRequest{FirstName: "Johanna", LastName: "Beispiel", NickName: &nick,
			DisplayName: "Johanna Beispiel " + changing, PreferredLanguage: "de-CH",
			Gender: signetv1.Gender_GENDER_FEMALE},
	}
}

func setupOrganization(admin, domain, name string) call {
	return call{
		token:     admin,
		verb:      "POST",
		path:      "/v1/orgs/_setup",
		procedure: "signet.v1.OrganizationService/SetupOrganization",
		message: &signetv1.SetupOrganizationRequest{
			Org: &signetv1.SetupOrganizationRequest_Org{Name: name, Domain: domain},
			Human: &signetv1.SetupOrganizationRequest_Human{
				UserName: "johanna",
				Profile: &signetv1.SetupOrganizationRequest_Human_Profile{
					FirstName:         "Johanna",
					LastName:          "Beispiel",
					NickName:          "Jo",
					DisplayName:       "Johanna Beispiel",
					PreferredLanguage: "de-CH",
					Gender:            signetv1.Gender_GENDER_FEMALE,
				},
				Email: &signetv1.SetupOrganizationRequest_Human_Email{Email: "johanna@example.org",
					IsEmailVerified: true},
				Phone: &signetv1.SetupOrganizationRequest_Human_Phone{Phone: "+41-44-555-01-23",
					IsPhoneVerified: true},
				Password: password,
			},
		},
	}
}

func createSession(p *person) call {
	return call{verb: "POST", path: "/v1/sessions", procedure: "signet.v1.SessionService/CreateSession",
		message: &signetv1.CreateSessionRequest{LoginName: p.login, Password: password}}
}

// person is the administrator of an organization of their own.
type person struct {
	org, user, login string
	token            string // of a session; empty for targets
	idp              string // empty for targets
	oidc             string // another provider; empty for all but callers
	team             string // group with ten members; likewise
	portal           string // provider that the person can sign in through; empty for targets

	robot  client // a service user of the organization
	api    client // an application of the organization that checks access tokens
	access string // token that the person let another application have, meant for api, too
}

// world is what the server has been filled with.
type world struct {
	admin   string   // token that may do everything
	people  []person // who calls: each a user with a session and a provider
	targets []person // whose passwords are set
	old     person   // who gets a long history
	few     person   // who is in an organization of some users
	some    person   // who is in an organization of many
	many    person   // who is in an organization of very many
	crowd   []person // who is in groups, as crowds says

	small, large string   // groups of the organization of very many
	joiners      []string // users of it who are in neither
}

// fill sets up organizations through the API, several at a time; with everything, or with what every revision of the
// program has.
func fill(ctx context.Context, address, admin string, callers int, everything bool) (*world, error) {
	w := &world{admin: admin, people: make([]person, callers), targets: make([]person, callers)}
	if everything {
		w.crowd = make([]person, len(crowds))
	}
	type job struct {
		who    *person
		domain string
		signIn bool
		team   bool
	}
	var jobs []job
	for i := range w.people {
		jobs = append(jobs, job{&w.people[i], fmt.Sprintf("caller%d.example.org", i), true, everything},
			job{&w.targets[i], fmt.Sprintf("target%d.example.org", i), false, false})
	}
	jobs = append(jobs, job{&w.old, "old.example.org", true, false}, job{&w.few, "few.example.org", true, false},
		job{&w.some, "some.example.org", true, false}, job{&w.many, "many.example.org", true, false})
	for i := range w.crowd {
		jobs = append(jobs, job{&w.crowd[i], fmt.Sprintf("crowd%d.example.org", i), true, false})
	}
	queue := make(chan job, len(jobs))
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	const hands = 8
	failed := make(chan error, hands)
	var group sync.WaitGroup
	for range hands {
		group.Go(func() {
			conn, err := dialREST(address, time.Now().Add(5*time.Minute))
			if err != nil {
				failed <- err
				return
			}
			defer conn.close()
			for j := range queue {
				err := errors.Join(ctx.Err(), j.who.enter(conn, admin, j.domain, j.signIn, everything))
				if err == nil && j.team {
					err = errors.Join(j.who.enterTeam(conn), j.who.enterOIDC(conn))
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	return w, <-failed
}

// enter sets up a person's organization and, for a caller, everything the operations change.
func (p *person) enter(conn *restConn, admin, domain string, signIn, portal bool) error {
	var made signetv1.SetupOrganizationResponse
	if err := conn.ask(setupOrganization(admin, domain, "Example "+domain), &made); err != nil {
		return err
	}
	p.org, p.user, p.login = made.GetOrgId(), made.GetUserId(), "johanna@"+domain
	if !signIn {
		return nil
	}
	var session signetv1.CreateSessionResponse
	if err := conn.ask(createSession(p), &session); err != nil {
		return err
	}
	p.token = session.GetToken()
	var idp signetv1.AddJWTIdentityProviderResponse
	err := conn.ask(call{
		token: p.token,
		verb:  "POST",
		path:  "/v1/idps/jwt",
		message: &signetv1.AddJWTIdentityProviderRequest{
			Name: "Example", JwtEndpoint: "https://login.example.org/token", Issuer: "https://login.example.org",
			KeysEndpoint: "https://login.example.org/keys",
		},
	}, &idp)
	if err != nil {
		return err
	}
	p.idp = idp.GetIdpId()
	var updated signetv1.UpdateMyProfileResponse // so that the state is what it will be from now on
	if err := conn.ask(updateMyProfile(p), &updated); err != nil {
		return err
	}
	if portal {
		if err := p.enterPortal(conn); err != nil {
			return err
		}
	}
	return p.enterApplication(conn)
}

// enterOIDC adds a second provider to the person's organization.
func (p *person) enterOIDC(conn *restConn) error {
	var made signetv1.AddOIDCIdentityProviderResponse
	err := conn.ask(call{
		token: p.token,
		verb:  "POST",
		path:  "/v1/idps/oidc",
		message: &signetv1.AddOIDCIdentityProviderRequest{
			Name: "OpenID", Issuer: "https://accounts.example.org", ClientId: "client",
			ClientSecret: "a secret of the client", Scopes: []string{"openid", "email"},
		},
	}, &made)
	p.oidc = made.GetIdpId()
	return err
}
