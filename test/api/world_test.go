package api_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// suffix is where organizations without a domain get theirs.
const suffix = "id.signet.test"

// World is one running server with its database, and all that was ever said to it.
type World struct {
	db      testdb.Database
	dir     string
	master  secret.MasterKey
	server  *server.Server
	address string
	wires   []wire // REST first
	rest    restWire
	grpc    grpcWire

	first       *datadir.FirstAdmin
	root        *Actor // owns the installation
	here, there place
	role        string // a custom one of the installation that nobody holds

	password string // what users made by addUser sign in with
	hash     []byte

	dns      fakeDNS
	log      testkit.Log
	requests atomic.Int64
	verified atomic.Int64

	mu      sync.Mutex
	secrets map[string]bool
	answers bytes.Buffer // all of them, but for those that answer a secret
}

// openWorld starts a server on a fresh database, set up in another way where that is asked for. It lives as long as the
// test.
func openWorld(t *testing.T, db testdb.Database, settings ...func(*server.Config)) *World {
	w := &World{db: db, dir: t.TempDir(), master: secret.NewMasterKey(), secrets: map[string]bool{}}
	w.hide(string(w.master.Text()))
	config := server.Config{Data: server.Data{DataDir: w.dir, MasterKey: string(w.master.Text())},
		Listen: "127.0.0.1:0", ExternalURL: "https://" + suffix, Resolver: &w.dns, StartsPerMinute: 1_000_000,
		LimitPublic: "off", Hasher: secret.NewCheapHasher()}
	if db.Engine == testdb.Postgres {
		config.Database = db.URL
	}
	for _, set := range settings {
		set(&config)
	}
	log := slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if w.server, err = server.Open(t.Context(), config, log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.server.Close(); err != nil {
			t.Error(err)
		}
		if w.log.Has(store.Unmarked) {
			t.Error("an operation has written many objects that does not say so: give its rule a cost")
		}
	})
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		t.Fatal(err)
	}
	httpServer := server.NewHTTPServer(w.server.Handler(), log)
	stopped := make(chan error, 1)
	go func() { stopped <- httpServer.Serve(listener) }()
	t.Cleanup(func() {
		_ = httpServer.Close()
		testkit.Receive(t, stopped, "the server has stopped")
	})
	w.address = listener.Addr().String()
	base := "http://" + w.address
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	conn, err := grpc.NewClient("passthrough:///"+w.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithMaxHeaderListSize(8<<10)) // as strict as the clients of other languages are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w.rest, w.grpc = restWire{client, base}, grpcWire{conn}
	web := webWire{client, base}
	if db.Engine == testdb.Postgres { // each engine has one of the modes of gRPC-Web, so every operation has both
		web.client = &http.Client{Transport: testkit.TextMode{Next: transport}}
	}
	w.wires = []wire{w.rest, w.grpc, web}

	w.first = w.server.FirstAdmin
	if w.first == nil {
		t.Fatal("the first start made no administrator")
	}
	w.hide(w.first.Password)
	w.hide(w.first.Token)
	w.root = &Actor{UserID: w.first.ServiceUserID, OrgID: w.first.OrgID, Token: w.first.Token}
	w.password = w.secret("shared")
	if w.hash, err = secret.NewCheapHasher().Hash(t.Context(), w.password); err != nil {
		t.Fatal(err)
	}
	w.here, w.there = w.newOrg(t), w.newOrg(t)
	w.role = w.newRole(t, access.Installation, sampleRole...)
	w.newRole(t, access.Installation, sampleRole...) // lists have pages
	return w
}

// secret makes a password that occurs nowhere else, and must occur nowhere else in the end.
func (w *World) secret(about string) string {
	s := "pw-" + about + "-" + rand.Text()
	w.hide(s)
	return s
}

// hide adds what must not be found at the end.
func (w *World) hide(s string) {
	if len(s) < 8 {
		panic("too short a secret would be found by chance: " + s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets[s] = true
}

// remember keeps an answer for the search for secrets.
func (w *World) remember(op *operation, a *Answer) {
	switch shown := a.message.(type) { // these show a secret, this once
	case *signetv1.CreateSessionResponse:
		w.hide(shown.GetToken())
	case *signetv1.CreateSessionWithPasskeyResponse:
		w.hide(shown.GetToken())
	case *signetv1.StartMyTOTPResponse:
		w.hide(shown.GetSecret())
	case *signetv1.MakeMyRecoveryCodesResponse:
		for _, code := range shown.GetCodes() {
			w.hide(code)
			w.hide(strings.ReplaceAll(code, "-", ""))
		}
	case *signetv1.CreateMyTokenResponse:
		w.hide(shown.GetToken())
	case *signetv1.CreateUserTokenResponse:
		w.hide(shown.GetToken())
	case *signetv1.SetServiceSecretResponse:
		w.hide(shown.GetSecret())
	case *signetv1.AddApplicationResponse:
		if shown.GetClientSecret() != "" {
			w.hide(shown.GetClientSecret())
		} else {
			w.keep(op, a)
		}
	case *signetv1.GenerateApplicationSecretResponse:
		w.hide(shown.GetClientSecret())
	case *signetv1.AddWebhookResponse:
		w.hide(shown.GetSecret())
	case *signetv1.RotateWebhookSecretResponse:
		w.hide(shown.GetSecret())
	case *signetv1.CreateInvitationResponse:
		w.hideLink(shown.GetLink())
	case *signetv1.SetupInvitedOrganizationResponse:
		w.hideLink(shown.GetLink())
	case *signetv1.ResendInvitationResponse:
		w.hideLink(shown.GetLink())
	case *signetv1.SendPasswordSetupResponse:
		w.hideLink(shown.GetLink())
	case *signetv1.AcceptInvitationResponse:
		w.hide(shown.GetToken())
	case *signetv1.CreateEmailCodeResponse:
		w.hide(shown.GetCode())
	case *signetv1.CreatePhoneCodeResponse:
		w.hide(shown.GetCode())
	default:
		w.keep(op, a)
	}
}

// keep adds an answer to what is searched at the end.
func (w *World) keep(op *operation, a *Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.answers, "%s %s %v %s\n", op.name(), a.wire, a.header, a.body)
	for _, m := range []proto.Message{a.message, a.status} {
		if m != nil {
			w.answers.WriteString(protojson.MarshalOptions{}.Format(m))
		}
	}
}

// scene is what a group of cases plays with: an organization that others may be in too, but users, a provider and an
// application that nobody else touches.
type scene struct {
	w      *World
	org    string
	domain string
	owner  *Actor        // ORG_OWNER
	user   *Actor        // holds nothing
	robot  func() *Actor // a service user who holds nothing, made when somebody asks for it
	idp    string
	app    string // one that runs on a server

	invitation func() string
	offer      func() string // to somebody of another organization, made when somebody asks for it
	webhook    func() string // one that never gets anything, made when somebody asks for it

	role string // a custom one that nobody holds; the scenes of an organization share it

	group func() string // one with nobody in it that gives nothing, made when somebody asks for it

	project func() string // with a role "sample"
	grant   func() string // of the project to another organization; it waits
	granted func() string // of a project of another organization to this one; it waits
	another func() string // an organization that nobody has heard of, each time another one

	ownPage func() (id, secret string) // an application with a sign-in page of its own, made when somebody asks for it

	assertion func() string // a passkey's answer that signs somebody in, once
}

// scene is set in the organization here; elsewhere, in another one. They cost no password hash.
func (w *World) scene(t *testing.T) *scene     { t.Helper(); return w.furnish(t, w.here) }
func (w *World) elsewhere(t *testing.T) *scene { t.Helper(); return w.furnish(t, w.there) }

// newScene is set in an organization of its own, for who changes or ends that. It costs a hash.
func (w *World) newScene(t *testing.T) *scene { t.Helper(); return w.furnish(t, w.newOrg(t)) }

// place is an organization.
type place struct{ org, domain, role string }

// newOrg sets up an organization over the API. DNS has the record that proves its domain.
func (w *World) newOrg(t *testing.T) place {
	t.Helper()
	domain := unique("scene") + ".example"
	made := done[*signetv1.SetupOrganizationResponse](t, &Client{w, w.rest}, w.root,
		with(setup(w.secret("founder")), "org.domain", domain))
	listed := (&Client{w, w.rest}).domains(t, w.root, made.GetOrgId()).GetDomains()[0]
	w.dns.set(listed.GetVerificationName(), listed.GetVerificationValue())
	return place{org: made.GetOrgId(), domain: domain, role: w.newRole(t, made.GetOrgId(), sampleRole...)}
}

func (w *World) furnish(t *testing.T, p place) *scene {
	t.Helper()
	s := &scene{w: w, org: p.org, domain: p.domain, role: p.role}
	s.owner = w.addUser(t, person{Org: s.org, Domain: s.domain, Roles: []access.Role{access.OrgOwner}})
	s.user = w.addUser(t, person{Org: s.org, Domain: s.domain})
	s.robot = sync.OnceValue(func() *Actor { return w.addUser(t, person{Org: s.org, Domain: s.domain, Service: true}) })
	device := sync.OnceValue(func() *factortest.Authenticator {
		return w.withPasskey(t, w.signedIn(t, w.addUser(t, person{Org: s.org, Domain: s.domain})))
	})
	s.assertion = func() string { return w.passkeySignIn(t, w.rest, device()) }
	s.idp = done[*signetv1.AddJWTIdentityProviderResponse](t, &Client{w, w.rest}, s.owner, addJWT()).GetIdpId()
	s.app = done[*signetv1.AddApplicationResponse](t, &Client{w, w.rest}, s.owner, addApp("Shop")).GetAppId()
	s.ownPage = sync.OnceValues(func() (string, string) {
		made := done[*signetv1.AddApplicationResponse](t, &Client{w, w.rest}, s.owner, addApp("Own page"))
		done[*signetv1.SetApplicationOwnSignInResponse](t, &Client{w, w.rest}, w.root,
			&signetv1.SetApplicationOwnSignInRequest{AppId: made.GetAppId(), Allowed: true}, header(orgID, s.org))
		return made.GetAppId(), made.GetClientSecret()
	})
	s.group = sync.OnceValue(func() string { return s.newGroup(t) })
	w.furnishProjects(t, s)
	s.invitation = sync.OnceValue(func() string {
		return done[*signetv1.CreateInvitationResponse](t, &Client{w, w.rest}, s.owner,
			&signetv1.CreateInvitationRequest{OrgId: s.org,
				Email: unique("invited") + "@mail.example"}).GetInvitationId()
	})
	s.offer = sync.OnceValue(func() string {
		other := w.there
		if s.org == other.org {
			other = w.here
		}
		return (&Client{w, w.rest}).offerRoles(t, w.root, s.org,
			w.addUser(t, person{Org: other.org}).UserID, userManager)
	})
	s.webhook = sync.OnceValue(func() string {
		return done[*signetv1.AddWebhookResponse](t, &Client{w, w.rest}, s.owner,
			addWebhook("Audit", "signing.*")).GetWebhookId()
	})
	return s
}

// newGroup makes a group of the scene's organization.
func (s *scene) newGroup(t *testing.T) string {
	t.Helper()
	return done[*signetv1.AddGroupResponse](t, &Client{s.w, s.w.rest}, s.owner, addGroup()).GetGroupId()
}

func addGroup() *signetv1.AddGroupRequest {
	return &signetv1.AddGroupRequest{Name: unique("Group"), Description: "Builds things"}
}

// unique makes a name that is used once. Its random part begins with a digit: as a word, it would at times begin with
// what a test searches for.
func unique(prefix string) string { return prefix + "-0" + strings.ToLower(rand.Text()[:12]) }

// Reading through the API.

func (c *Client) me(t *testing.T, as *Actor) *signetv1.User {
	t.Helper()
	return done[*signetv1.GetMyUserResponse](t, c, as, &signetv1.GetMyUserRequest{}).GetUser()
}

func (c *Client) user(t *testing.T, as *Actor, id string, h ...Header) *signetv1.User {
	t.Helper()
	return done[*signetv1.GetUserResponse](t, c, as, &signetv1.GetUserRequest{UserId: id}, h...).GetUser()
}

func (c *Client) org(t *testing.T, as *Actor, id string) *signetv1.Organization {
	t.Helper()
	return done[*signetv1.GetOrganizationResponse](t, c, as, &signetv1.GetOrganizationRequest{OrgId: id}).GetOrg()
}

func (c *Client) idp(t *testing.T, as *Actor, id string, h ...Header) *signetv1.IdentityProvider {
	t.Helper()
	return done[*signetv1.GetIdentityProviderResponse](t, c, as,
		&signetv1.GetIdentityProviderRequest{IdpId: id}, h...).GetIdp()
}

func (c *Client) app(t *testing.T, as *Actor, id string, h ...Header) *signetv1.Application {
	t.Helper()
	return done[*signetv1.GetApplicationResponse](t, c, as, &signetv1.GetApplicationRequest{AppId: id}, h...).GetApp()
}

// session signs an actor in and gives an actor that holds the session instead.
func (c *Client) session(t *testing.T, as *Actor) *Actor {
	t.Helper()
	in := done[*signetv1.CreateSessionResponse](t, c, nil, signIn(as.LoginName, as.Password))
	same(t, "user of the session", in.GetUserId(), as.UserID)
	if life := time.Until(in.GetExpirationDate().AsTime()); life < 11*time.Hour || life > 12*time.Hour {
		t.Errorf("the session lives for %v", life)
	}
	out := *as
	out.Token, out.SessionID, out.MustChange = in.GetToken(), in.GetSessionId(), in.GetPasswordChangeRequired()
	return &out
}

// secondServer: data that is being served cannot be served once more (SQLite), or with another master key (PostgreSQL).
func secondServer(t *testing.T, w *World) {
	config := server.Config{Data: server.Data{MasterKey: string(w.master.Text())}, Listen: "127.0.0.1:0",
		ExternalURL: "https://" + suffix, StartsPerMinute: 1_000_000}
	dirs := map[string]string{"the same directory": w.dir, "a link to it": filepath.Join(t.TempDir(), "link")}
	if err := os.Symlink(w.dir, dirs["a link to it"]); err != nil {
		t.Fatal(err)
	}
	if w.db.Engine == testdb.Postgres {
		config.Database, config.MasterKey = w.db.URL, string(secret.NewMasterKey().Text())
		dirs = map[string]string{"another key": t.TempDir()}
	}
	for name, dir := range dirs {
		config.DataDir = dir
		second, err := server.Open(t.Context(), config, slog.New(slog.DiscardHandler))
		if err == nil {
			_ = second.Close()
			t.Errorf("%s: a second server started", name)
		}
	}
}
