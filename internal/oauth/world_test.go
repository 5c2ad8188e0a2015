package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/oauth/request"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/test/testkit"
)

const (
	issuer   = "https://id.test"
	callback = "https://shop.test/callback"
	verifier = "a-verifier-that-is-long-enough-for-the-rules-of-PKCE"
	browser  = "the browser"
)

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// signer signs with a key of its own.
type signer struct{ key *ecdsa.PrivateKey }

func (s signer) Sign(_ context.Context, algorithm, typ string, claims any) (string, error) {
	by, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: s.key},
		(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := by.Sign(text)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// world has the organizations org_a and org_b with a person each (usr_a, usr_b), a service user usr_robot in org_a, and
// the applications app_web (keeps a secret), app_spa, app_tv (devices), app_jwt (JWT tokens), app_asks (needs consent)
// and app_all (of org_b, for everybody), all with refresh tokens.
type world struct {
	*Grants
	t     *testing.T
	store *eventtest.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := eventtest.New(t, installation.Kind, org.Kind, user.Kind, session.Kind, app.Kind, idp.Kind, group.Kind,
		project.Kind, project.AccessKind, Kind)
	for _, id := range []string{"a", "b"} {
		domain := id + ".test"
		eventtest.Given(t, s, org.Kind, "org_"+id, "org_"+id, []event.Claim{org.DomainClaim(domain)},
			org.Added{Name: id}, org.DomainAdded{Domain: domain, Verified: true, Primary: true})
		eventtest.Given(t, s, user.Kind, "usr_"+id, "org_"+id, []event.Claim{user.NameClaim("org_"+id, "jo")},
			user.HumanAdded{
				EmailVerified: true,
				Personal: user.HumanFacts{
					UserName:    "jo",
					UserNameKey: "jo",
					Email:       "jo@" + domain,
					EmailKey:    "jo@" + domain,
					Profile: user.Profile{FirstName: "Jo", LastName: "Doe", DisplayName: "Jo Doe",
						PreferredLanguage: "de"},
				},
			})
	}
	eventtest.Given(t, s, user.Kind, "usr_robot", "org_a", []event.Claim{user.NameClaim("org_a", "robot")},
		user.ServiceAdded{Personal: user.ServiceFacts{Name: "Robot", UserName: "robot", UserNameKey: "robot"}})
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	w := &world{
		t:     t,
		store: s,
		Grants: &Grants{Store: s, Master: s.Master, Clock: s.Now, Issuer: issuer, Signer: signer{key},
			Sessions: &session.Sessions{Store: s, Master: s.Master, Clock: s.Now, DefaultOrg: "org_a",
				Standings: &session.Standings{}, Audience: issuer}},
	}
	settings := app.Settings{
		AuthMethod:          app.NoAuth,
		GrantTypes:          []app.GrantType{app.AuthorizationCode, app.RefreshToken},
		RedirectURIs:        []string{callback},
		PostLogoutURIs:      []string{"https://shop.test/"},
		TokenFormat:         app.Opaque,
		SigningAlgorithm:    "ES256",
		AccessTokenSeconds:  3600,
		RefreshTokenSeconds: 86400,
	}
	add := func(id, org string, typ app.Type, change func(*app.Settings)) {
		own := settings
		change(&own)
		facts := []event.Fact[app.App]{app.Added{Name: id, NameKey: id, Type: typ, Settings: own}}
		if own.AuthMethod.BySecret() {
			facts = append(facts, app.SecretSet{})
		}
		eventtest.Given(t, s, app.Kind, "app_"+id, org, nil, facts...)
	}
	add("web", "org_a", app.Web, func(s *app.Settings) { s.AuthMethod = app.SecretBasic })
	add("spa", "org_a", app.SPA, func(*app.Settings) {})
	add("tv", "org_a", app.Native,
		func(s *app.Settings) { s.GrantTypes = []app.GrantType{app.DeviceCode, app.RefreshToken} })
	add("jwt", "org_a", app.SPA, func(s *app.Settings) { s.TokenFormat = app.JWT })
	add("asks", "org_a", app.SPA, func(s *app.Settings) { s.ConsentRequired = true })
	add("all", "org_b", app.SPA, func(s *app.Settings) { s.AllOrganizations = true })
	return w
}

var must = testkit.Must

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	// The client is told the same of all of these, so the log says which it was.
	for _, alike := range []error{ErrInvalidGrant, ErrInvalidClient, ErrRedirectRefused, ErrUnknownClient} {
		if why(err) == "" && errors.Is(err, alike) {
			t.Errorf("the log does not say why: %v", err)
		}
	}
}

// why is what the log says about a refusal.
func why(err error) string {
	e, _ := errors.AsType[*errs.Error](err)
	if e == nil {
		return ""
	}
	return e.Note
}

// client is an application as if it had proven who it is.
func (w *world) client(id string) *Client {
	w.t.Helper()
	return &Client{App: eventtest.State(w.t, w.store, app.Kind, id)}
}

// proven is a client that has said who it is.
func (w *world) proven(id string) func() (*Client, error) {
	return func() (*Client, error) { return w.client(id), nil }
}

// signIn opens a session of a user.
func (w *world) signIn(userID string) *session.Bearer {
	w.t.Helper()
	text, hash := secret.NewToken(secret.Session)
	u := eventtest.State(w.t, w.store, user.Kind, userID)
	o := eventtest.State(w.t, w.store, org.Kind, u.Org)
	now := event.Micros(w.store.Now())
	w.store.GivenToken(event.Token{
		ID:       event.NewID("ses"),
		Hash:     hash,
		Kind:     string(secret.Session),
		UserID:   userID,
		Epoch:    u.Data.SessionEpoch,
		OrgEpoch: o.Data.Epoch,
		Created:  now,
		Expires:  now + (12 * time.Hour).Microseconds(),
	})
	b, err := w.Sessions.Bearer(w.t.Context(), text)
	must(w.t, err)
	return b
}

func ask(client string, scopes string) request.Ask {
	return request.Ask{
		ClientID:            client,
		RedirectURI:         callback,
		ResponseType:        "code",
		Scope:               scopes,
		State:               "st",
		Nonce:               "no",
		CodeChallenge:       challenge(),
		CodeChallengeMethod: "S256",
		Browser:             browser,
	}
}

// begin begins a request that is fine.
func (w *world) begin(a request.Ask) string {
	w.t.Helper()
	began, err := w.Begin(w.t.Context(), a)
	must(w.t, err)
	if began.ID == "" {
		w.t.Fatalf("refused: %s", began.Refused)
	}
	return began.ID
}

// code lets an application have a code. People of other organizations agree to what it asks for.
func (w *world) code(a request.Ask, bearer *session.Bearer) string {
	w.t.Helper()
	var agreed []string
	if w.client(a.ClientID).App.Org != bearer.Caller.OrgID {
		agreed = strings.Fields(a.Scope)
	}
	to, err := w.Approve(w.t.Context(), w.begin(a), browser, bearer, agreed)
	must(w.t, err)
	return parameters(w.t, to.Address).Get("code")
}

func parameters(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	return u.Query()
}

func (w *world) exchange(client, code string) (*Tokens, error) {
	w.t.Helper()
	return w.Exchange(w.t.Context(), w.client(client), Code{Text: code, RedirectURI: callback, Verifier: verifier})
}

// tokens lets an application have tokens of a person.
func (w *world) tokens(client, userID, scopes string) *Tokens {
	w.t.Helper()
	made, err := w.exchange(client, w.code(ask(client, scopes), w.signIn(userID)))
	must(w.t, err)
	return made
}

// counts tells whether an access token counts.
func (w *world) counts(text string) bool {
	w.t.Helper()
	b, err := w.Bearer(w.t.Context(), text)
	must(w.t, err)
	return b != nil
}

func (w *world) change(id string, fact any) {
	w.t.Helper()
	switch fact := fact.(type) {
	case event.Fact[user.User]:
		eventtest.Given(w.t, w.store, user.Kind, id, "", nil, fact)
	case event.Fact[app.App]:
		eventtest.Given(w.t, w.store, app.Kind, id, "", nil, fact)
	case event.Fact[org.Org]:
		eventtest.Given(w.t, w.store, org.Kind, id, "", nil, fact)
	default:
		w.t.Fatalf("nothing is changed by %T", fact)
	}
}

func sorted(s ...string) []string { return slices.Sorted(slices.Values(s)) }
