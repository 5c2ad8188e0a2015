package api_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

var (
	notService      = refused(codes.FailedPrecondition, "NOT_A_SERVICE_USER")
	sessionRequired = refused(codes.PermissionDenied, "SESSION_REQUIRED")
	userNotActive   = refused(codes.FailedPrecondition, "USER_NOT_ACTIVE")
	orgNotActive    = refused(codes.FailedPrecondition, "ORGANIZATION_NOT_ACTIVE")
	noToken         = refused(codes.NotFound, "TOKEN_NOT_FOUND")
	noKey           = refused(codes.NotFound, "KEY_NOT_FOUND")
	noSecret        = refused(codes.NotFound, "SECRET_NOT_FOUND")
	keyExists       = refused(codes.AlreadyExists, "KEY_EXISTS")
	tooManyKeys     = refused(codes.FailedPrecondition, "TOO_MANY_KEYS")
)

// signedIn gives an actor with a session of its own. It costs no hash.
func (w *World) signedIn(t *testing.T, as *Actor) *Actor {
	t.Helper()
	in := *as
	w.giveToken(t, &in, secret.Session, 12*time.Hour)
	return &in
}

func in(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(time.Now().Add(d)) }

// newPublicKey is a key that nobody else has.
func newPublicKey(t testing.TB) string {
	t.Helper()
	key, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return publicPEM(t, key)
}

func publicPEM(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func (c *Client) myTokens(t *testing.T, as *Actor) []*signetv1.Token {
	t.Helper()
	return done[*signetv1.ListMyTokensResponse](t, c, as, &signetv1.ListMyTokensRequest{}).GetTokens()
}

func (c *Client) tokensOf(t *testing.T, as *Actor, id string) []*signetv1.Token {
	t.Helper()
	return done[*signetv1.ListUserTokensResponse](t, c, as, &signetv1.ListUserTokensRequest{UserId: id}).GetTokens()
}

// myTokenStory: a person who is signed in makes tokens, sees them and revokes them.
func myTokenStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	as := c.w.addUser(t, person{Org: s.org, Domain: s.domain})
	in := c.w.signedIn(t, as)
	create := &signetv1.CreateMyTokenRequest{Name: "Laptop 𝕊 " + unique("name")}
	sequence := c.me(t, in).GetDetails().GetSequence()
	made := done[*signetv1.CreateMyTokenResponse](t, c, in, create)
	same(t, "form", made.GetToken()[:8]+made.GetTokenId()[:4], "sgn_pat_pat_")
	if life := time.Until(made.GetExpirationDate().AsTime()); life > 90*24*time.Hour ||
		life < 90*24*time.Hour-time.Minute {
		t.Errorf("it lives for %v", life)
	}
	holder := &Actor{UserID: as.UserID, OrgID: as.OrgID, Token: made.GetToken()}
	same(t, "the token is the user", c.me(t, holder).GetUserId(), as.UserID)
	same(t, "the user's own sequence has not moved", c.me(t, in).GetDetails().GetSequence(), sequence)

	// Lists: the oldest first, and which one makes the call. The first one came with the actor.
	tokens := c.myTokens(t, in)
	if len(tokens) != 2 || tokens[0].GetName() != "test" || tokens[0].GetIsCurrent() || tokens[1].GetIsCurrent() {
		t.Fatalf("listed %v", tokens)
	}
	sameMessage(t, "as made", tokens[1], &signetv1.Token{
		TokenId:        made.GetTokenId(),
		Name:           create.GetName(),
		ExpirationDate: made.GetExpirationDate(),
		CreationDate:   tokens[1].GetCreationDate(),
	})
	if age := time.Since(tokens[1].GetCreationDate().AsTime()); age < 0 || age > time.Minute {
		t.Errorf("made %v ago", age)
	}
	same(t, "the one that calls", c.myTokens(t, holder)[1].GetIsCurrent(), true)
	sameMessage(t, "as administrators see it", c.tokensOf(t, s.owner, as.UserID)[1], tokens[1])

	// A token cannot make others, and a service user has them made.
	c.refused(t, sessionRequired, holder, create)
	c.refused(t, notHuman, c.w.addUser(t, person{Org: s.org, Service: true}), create)
	restricted := c.w.addUser(t, person{Org: s.org})
	c.w.changeUser(t, restricted.UserID, user.PasswordSet{ChangeRequired: true})
	first := c.w.signedIn(t, restricted)
	for _, req := range []proto.Message{create, &signetv1.ListMyTokensRequest{},
		&signetv1.RevokeMyTokenRequest{TokenId: "pat_x"},
		&signetv1.ListMySessionsRequest{}, &signetv1.EndMySessionsRequest{}} {
		c.refused(t, changeRequired, first, req)
	}

	// The answer holds a secret, so it is not kept: a key says nothing here, not even a malformed one.
	one, two := done[*signetv1.CreateMyTokenResponse](t, c, in, create, key("k")),
		done[*signetv1.CreateMyTokenResponse](t, c, in, create, key("k"))
	if one.GetToken() == two.GetToken() || one.GetTokenId() == two.GetTokenId() {
		t.Error("a token was given out twice")
	}
	done[*signetv1.CreateMyTokenResponse](t, c, in, create, key("not visible ASCII"))

	// Only what is one's own and a token can be revoked.
	revoke := func(id string) proto.Message { return &signetv1.RevokeMyTokenRequest{TokenId: id} }
	theirs := c.tokensOf(t, s.owner, s.user.UserID)[0].GetTokenId()
	session := done[*signetv1.ListMySessionsResponse](t, c, in,
		&signetv1.ListMySessionsRequest{}).GetSessions()[0].GetSessionId()
	for _, id := range []string{"pat_unknown", theirs, session, strings.ToUpper(made.GetTokenId()), "%"} {
		c.refused(t, noToken, in, revoke(id))
	}
	c.me(t, s.user)
	done[*signetv1.RevokeMyTokenResponse](t, c, in, revoke(made.GetTokenId()))
	c.refused(t, unauthenticated, holder, &signetv1.GetMyUserRequest{})
	c.refused(t, noToken, in, revoke(made.GetTokenId()))
	if slices.ContainsFunc(c.myTokens(t, in),
		func(t *signetv1.Token) bool { return t.GetTokenId() == made.GetTokenId() }) {
		t.Error("a revoked token is listed")
	}
	// A token may end itself.
	other := &Actor{Token: one.GetToken()}
	done[*signetv1.RevokeMyTokenResponse](t, c, other, revoke(one.GetTokenId()))
	c.refused(t, unauthenticated, other, revoke(two.GetTokenId()))
	c.me(t, &Actor{Token: two.GetToken()})

	// What has expired, or died with the password, is not there any more.
	over := *as
	c.w.giveToken(t, &over, secret.PAT, -time.Minute)
	same(t, "tokens that count", len(c.myTokens(t, in)), 3)
	c.w.changeUser(t, as.UserID, user.PasswordSet{})
	same(t, "tokens after the password was set", len(c.tokensOf(t, s.owner, as.UserID)), 0)
	c.refused(t, noToken, s.owner, &signetv1.RevokeUserTokenRequest{UserId: as.UserID, TokenId: two.GetTokenId()})
}

// userTokenStory: whoever may makes tokens for service users, and revokes everybody's.
func userTokenStory(t *testing.T, c *Client) {
	s := c.w.newScene(t)
	robot := c.w.addUser(t, person{Org: s.org, Service: true})
	expires := in(time.Hour)
	create := &signetv1.CreateUserTokenRequest{UserId: robot.UserID, Name: "deploys", ExpirationDate: expires}
	made := done[*signetv1.CreateUserTokenResponse](t, c, s.owner, create)
	same(t, "expiry to the microsecond", made.GetExpirationDate().AsTime(), expires.AsTime().Truncate(time.Microsecond))
	holder := &Actor{UserID: robot.UserID, OrgID: s.org, Token: made.GetToken()}
	same(t, "the token is the user", c.me(t, holder).GetUserId(), robot.UserID)
	listed := c.tokensOf(t, s.owner, robot.UserID)
	same(t, "listed", len(listed), 2)
	same(t, "by name", listed[1].GetName(), "deploys")

	// Pages.
	for range 3 {
		done[*signetv1.CreateUserTokenResponse](t, c, s.owner, with(create, "name", ""))
	}
	var seen []string
	list := &signetv1.ListUserTokensRequest{UserId: robot.UserID, PageSize: 2}
	for pages := 1; ; pages++ {
		page := done[*signetv1.ListUserTokensResponse](t, c, s.owner, list)
		for _, token := range page.GetTokens() {
			seen = append(seen, token.GetTokenId())
		}
		if list.PageToken = page.GetNextPageToken(); list.PageToken == "" {
			same(t, "pages", pages, 3)
			break
		}
		c.refused(t, invalid("pageToken"), s.owner, with(list, "userId", s.user.UserID))
	}
	if !slices.IsSorted(seen) || len(slices.Compact(seen)) != 5 {
		t.Errorf("the pages hold %q", seen)
	}

	// An administrator revokes; another user's token is not this user's.
	revoke := &signetv1.RevokeUserTokenRequest{UserId: robot.UserID, TokenId: made.GetTokenId()}
	c.refused(t, noToken, s.owner, with(revoke, "userId", s.user.UserID))
	c.me(t, holder)
	done[*signetv1.RevokeUserTokenResponse](t, c, s.owner, revoke)
	c.refused(t, unauthenticated, holder, &signetv1.GetMyUserRequest{})
	c.refused(t, noToken, s.owner, revoke)
	theirs := c.tokensOf(t, s.owner, s.user.UserID)[0].GetTokenId()
	done[*signetv1.RevokeUserTokenResponse](t, c, s.owner,
		&signetv1.RevokeUserTokenRequest{UserId: s.user.UserID, TokenId: theirs})
	c.refused(t, unauthenticated, s.user, &signetv1.GetMyUserRequest{})

	// A token that would not work is not made, nor does it come alive later.
	for _, off := range []event.Fact[user.User]{user.Deactivated{}, user.WasLocked{}} {
		c.w.changeUser(t, robot.UserID, off)
		c.refused(t, userNotActive, s.owner, create)
		same(t, "listed", len(c.tokensOf(t, s.owner, robot.UserID)), 0)
		c.w.changeUser(t, robot.UserID, user.Reactivated{})
	}
	holder.Token = done[*signetv1.CreateUserTokenResponse](t, c, s.owner, create).GetToken()
	c.me(t, holder)
	c.w.changeOrg(t, s.org, org.Deactivated{})
	c.refused(t, orgNotActive, c.w.root, create, header(orgID, s.org))
	same(t, "listed", len(done[*signetv1.ListUserTokensResponse](t, c, c.w.root,
		&signetv1.ListUserTokensRequest{UserId: robot.UserID}, header(orgID, s.org)).GetTokens()), 0)
	c.w.changeOrg(t, s.org, org.Reactivated{})
	c.refused(t, unauthenticated, holder, &signetv1.GetMyUserRequest{})
	done[*signetv1.CreateUserTokenResponse](t, c, c.w.root, create, header(orgID, s.org))
}

// expiryCases are about how long tokens and keys may live.
func expiryCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	me := w.signedIn(t, s.user)
	robot := w.addUser(t, person{Org: s.org, Service: true})
	const day = 24 * time.Hour
	requests := []struct {
		name  string
		as    *Actor
		req   proto.Message
		bound bool
	}{
		{"own", me, &signetv1.CreateMyTokenRequest{}, true},
		{"of a service user", s.owner, &signetv1.CreateUserTokenRequest{UserId: robot.UserID}, true},
		{"key", s.owner, &signetv1.AddServiceKeyRequest{UserId: robot.UserID, PublicKey: newPublicKey(t)}, false},
	}
	for _, r := range requests {
		wrong := map[string]*timestamppb.Timestamp{"a minute ago": in(-time.Minute),
			"the first year": timestamppb.New(time.Time{}), "1970": {}}
		if far := map[string]*timestamppb.Timestamp{"366 days and a minute": in(366*day + time.Minute),
			"the year 9999": {Seconds: 253402300799}}; r.bound {
			for name, date := range far {
				wrong[name] = date
			}
		}
		for name, date := range wrong {
			cases = append(cases,
				Case{Name: r.name + "/" + name, As: r.as, Req: with(r.req, "expirationDate", date.ProtoReflect()),
					Want: invalid("expirationDate")})
		}
		// What is wrong with the request comes before who sends it.
		cases = append(cases, Case{Name: r.name + "/without permission", As: w.addUser(t, person{Org: s.org}),
			Req: with(r.req, "expirationDate", in(-time.Minute).ProtoReflect()), Want: invalid("expirationDate")})
		if r.bound {
			cases = append(cases,
				Case{Name: r.name + "/366 days", As: r.as,
					Req: with(r.req, "expirationDate", in(366*day).ProtoReflect()), Want: ok},
				Case{Name: r.name + "/a minute", As: r.as,
					Req: with(r.req, "expirationDate", in(time.Minute).ProtoReflect()), Want: ok},
				Case{Name: r.name + "/name of 200", As: r.as, Req: with(r.req, "name", wide(200)), Want: ok},
				Case{Name: r.name + "/name of 201", As: r.as, Req: with(r.req, "name", wide(201)),
					Want: invalid("name")})
		}
	}
	return cases
}

// publicKeyCases are keys that are none. What was sent is never in the answer: it may be a private one.
func publicKeyCases(t *testing.T, w *World) (cases []Case) {
	s := w.scene(t)
	robot := w.addUser(t, person{Org: s.org, Service: true})
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	leaked := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	w.hide(strings.Split(leaked, "\n")[1])
	short, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "text": "a key", "two": newPublicKey(t) + newPublicKey(t), "private": leaked,
		"both":  newPublicKey(t) + leaked,
		"P-224": publicPEM(t, &short.PublicKey), "long": newPublicKey(t) + strings.Repeat(" ", 4000),
		"cut": newPublicKey(t)[:60],
	} {
		req := &signetv1.AddServiceKeyRequest{UserId: robot.UserID, PublicKey: text}
		cases = append(cases, Case{
			Name: name,
			As:   s.owner,
			Req:  req,
			Want: invalid("publicKey"),
			Check: func(t *testing.T, a *Answer) {
				if line := strings.Split(text, "\n"); len(line) > 1 && strings.Contains(a.status.String(), line[1]) {
					t.Errorf("the answer repeats the key: %v", a.status)
				}
			},
		})
	}
	return append(cases, Case{
		Name: "together with the date",
		As:   s.owner,
		Req: &signetv1.AddServiceKeyRequest{UserId: robot.UserID, PublicKey: "x",
			ExpirationDate: in(-time.Hour)},
		Want: invalid("publicKey", "expirationDate"),
	})
}

// whoseCredentialCases: users of the wrong kind, of another organization, with more permissions.
func whoseCredentialCases(t *testing.T, w *World) (cases []Case) {
	s, other := w.scene(t), w.elsewhere(t)
	manager := s.holder(t, userManager)
	greater := w.addUser(t, person{Org: s.org, Service: true, Roles: []access.Role{access.OrgOwner}})
	stranger := w.addUser(t, person{Org: other.org, Service: true})
	for _, req := range []proto.Message{
		&signetv1.CreateUserTokenRequest{}, &signetv1.SetServiceSecretRequest{}, &signetv1.RemoveServiceSecretRequest{},
		&signetv1.AddServiceKeyRequest{PublicKey: newPublicKey(t)}, &signetv1.RemoveServiceKeyRequest{KeyId: "pky_x"},
		&signetv1.ListServiceKeysRequest{},
		workloadRule(""), &signetv1.RemoveServiceWorkloadRuleRequest{RuleId: "wlr_x"},
		&signetv1.ListServiceWorkloadRulesRequest{}, &signetv1.ListServiceWorkloadRefusalsRequest{},
		&signetv1.ListUserTokensRequest{}, &signetv1.RevokeUserTokenRequest{TokenId: "pat_x"},
		&signetv1.ListUserSessionsRequest{}, &signetv1.EndUserSessionRequest{SessionId: "ses_x"},
		&signetv1.EndUserSessionsRequest{},
	} {
		op := operationFor(req)
		cases = append(cases, Case{Name: op.name() + "/of another organization", As: s.owner,
			Req: with(req, "userId", stranger.UserID), Want: noUser},
			Case{Name: op.name() + "/unknown", As: s.owner, Req: with(req, "userId", "usr_x"), Want: noUser})
		if op.verb != "GET" {
			cases = append(cases,
				Case{Name: op.name() + "/who holds more", As: manager, Req: with(req, "userId", greater.UserID),
					Want: targetHoldsMore})
		}
		if strings.Contains(op.name(), "Service") || op.name() == "CreateUserToken" {
			cases = append(cases,
				Case{Name: op.name() + "/a person", As: s.owner, Req: with(req, "userId", s.user.UserID),
					Want: notService})
		}
	}
	return cases
}

// serviceSecretStory: a secret is shown once, replaced, removed, and is no bearer token.
func serviceSecretStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	robot := c.w.addUser(t, person{Org: s.org, Service: true})
	set, remove := &signetv1.SetServiceSecretRequest{UserId: robot.UserID},
		&signetv1.RemoveServiceSecretRequest{UserId: robot.UserID}
	matches := func(text string) bool {
		t.Helper()
		u, err := user.Kind.Read(t.Context(), c.w.server.Store(), robot.UserID)
		if err != nil {
			t.Fatal(err)
		}
		row, err := c.w.server.Store().Row(t.Context(), user.SecretRow(robot.UserID))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256([]byte(text)); row != nil && user.SecretMatches(&u.Data, row, text) &&
			string(row.Value) != string(sum[:]) {
			t.Error("something else than its SHA-256 is stored")
		}
		return user.SecretMatches(&u.Data, row, text)
	}
	c.refused(t, noSecret, s.owner, remove)
	c.refused(t, sequenceMismatch, s.owner, set, stale)
	first := done[*signetv1.SetServiceSecretResponse](t, c, s.owner, set, header("if-match", "1"))
	same(t, "form", first.GetSecret()[:8], "sgn_sec_")
	same(t, "sequence", first.GetDetails().GetSequence(), 2)
	same(t, "it is the secret", matches(first.GetSecret()), true)
	c.refused(t, unauthenticated, &Actor{Token: first.GetSecret()}, &signetv1.GetMyUserRequest{})
	second := done[*signetv1.SetServiceSecretResponse](t, c, s.owner, set)
	same(t, "the earlier one", matches(first.GetSecret()), false)
	same(t, "the new one", matches(second.GetSecret()), true)
	c.refused(t, sequenceMismatch, s.owner, remove, stale)
	d := done[*signetv1.RemoveServiceSecretResponse](t, c, s.owner, remove)
	same(t, "sequence", d.GetDetails().GetSequence(), 4)
	same(t, "a removed one", matches(second.GetSecret()), false)
	c.refused(t, noSecret, s.owner, remove, stale)
	c.me(t, robot) // tokens are another matter
}

// serviceKeyStory: public keys are added, listed in their canonical form and removed.
func serviceKeyStory(t *testing.T, c *Client) {
	s := c.w.scene(t)
	robot := c.w.addUser(t, person{Org: s.org, Service: true})
	list := func() *signetv1.ListServiceKeysResponse {
		t.Helper()
		return done[*signetv1.ListServiceKeysResponse](t, c, s.owner,
			&signetv1.ListServiceKeysRequest{UserId: robot.UserID})
	}
	same(t, "none at first", len(list().GetKeys()), 0)
	text := newPublicKey(t)
	add := &signetv1.AddServiceKeyRequest{UserId: robot.UserID,
		PublicKey: "\n" + strings.ReplaceAll(text, "\n", "\r\n")}
	c.refused(t, sequenceMismatch, s.owner, add, stale)
	made := done[*signetv1.AddServiceKeyResponse](t, c, s.owner, add, header("if-match", "1"))
	keys := list()
	sameMessage(t, "key", keys.GetKeys()[0],
		&signetv1.ServiceKey{KeyId: made.GetKeyId(), PublicKey: text, CreationDate: made.GetDetails().GetChangeDate()})
	sameMessage(t, "details", keys.GetDetails(), c.user(t, s.owner, robot.UserID).GetDetails())
	same(t, "prefix", made.GetKeyId()[:4], "pky_")
	c.refused(t, keyExists, s.owner, add)
	c.refused(t, keyExists, s.owner, with(add, "publicKey", text))
	c.refused(t, keyExists, s.owner, add, stale)
	twin := c.w.addUser(t, person{Org: s.org, Service: true})
	done[*signetv1.AddServiceKeyResponse](t, c, s.owner, with(add, "userId", twin.UserID)) // another user may have it

	for range 19 {
		add = &signetv1.AddServiceKeyRequest{UserId: robot.UserID, PublicKey: newPublicKey(t),
			ExpirationDate: in(time.Hour)}
		done[*signetv1.AddServiceKeyResponse](t, c, s.owner, add)
	}
	all := list().GetKeys()
	same(t, "keys", len(all), 20)
	same(t, "expiry", all[19].GetExpirationDate().AsTime(), add.GetExpirationDate().AsTime().Truncate(time.Microsecond))
	same(t, "the oldest is first", all[0].GetKeyId(), made.GetKeyId())
	c.refused(t, tooManyKeys, s.owner, with(add, "publicKey", newPublicKey(t)), stale)

	remove := &signetv1.RemoveServiceKeyRequest{UserId: robot.UserID, KeyId: made.GetKeyId()}
	c.refused(t, sequenceMismatch, s.owner, remove, stale)
	c.refused(t, noKey, s.owner, with(remove, "keyId", all[0].GetKeyId()+"0"), stale)
	d := done[*signetv1.RemoveServiceKeyResponse](t, c, s.owner, remove)
	same(t, "sequence", d.GetDetails().GetSequence(), 22)
	c.refused(t, noKey, s.owner, remove)
	same(t, "keys", len(list().GetKeys()), 19)
	// there is room again, and it may come back
	done[*signetv1.AddServiceKeyResponse](t, c, s.owner, with(add, "publicKey", text))
}
