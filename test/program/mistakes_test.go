package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/test/testkit"
)

// mistakesFile shows what beginners type, and what Signet says. It follows from this test; SIGNET_UPDATE_DOCS=1 writes
// it.
const mistakesFile = "../../docs/mistakes.md"

// mistakes are commands as they are typed, and requests: who sends it, method, path, headers in brackets, and a body in
// JSON or of a form. Words like $WEB stand for what is different every time.
var mistakes = []struct {
	title string
	typed []string
}{
	{"Commands and settings", []string{
		"signet strat",
		"signet start --liste localhost:8080",
		"signet start --listen 8080",
		"signet start --listen $RUNNING",
		"signet start --external-url id.example.org",
		"signet start --external-url http://id.example.org",
		"signet start --external-url https://id.example.org/auth",
		"signet start --database mysql://localhost/signet",
		"signet start --database-wait 0s --database postgres://127.0.0.1:1/signet",
		"signet start --tls-cert cert.pem",
		"signet start --trusted-proxies proxy",
		"signet start --cors-origins *",
		"signet start --smtp-url smtp.example.org",
		"signet start --smtp-url smtp://mail.example.org:587",
		"signet start --trace-endpoint collector:4318",
		"signet start --trace-endpoint http://localhost:4318 --trace-sample 5",
		"signet start --log-level verbose",
		"signet start --webhook-lease 30",
		"signet start --starts-per-minute 1",
		"signet start --config $DIR/missing.yaml",
		"signet start --development --external-url https://id.example.org",
		"SIGNET_LOGLEVEL=debug signet version",
		"signet start --data-dir $USED",
		"signet admin recover --data-dir $USED",
		"signet admin recover --data-dir $EMPTY",
		"signet import users people.csv --server https://id.example.org",
		"signet import users $DIR/people.txt",
		"signet move --data-dir $EMPTY --to postgres://127.0.0.1:1/signet",
	}},
	{"Addresses and bodies", []string{
		"admin: GET /v1/user/me",
		"admin: GET /v1/users/",
		"admin: POST /v1/users/me/profile {}",
		"admin: PUT /signet.v1.UserService/UpdateMyProfile {}",
		"admin: POST /signet.v1.UserService/UpdateMyProfile {}",
		"admin: PUT /v1/users/me/profile firstName=Ada",
		"admin: PUT /v1/users/me/profile",
		`admin: PUT /v1/users/me/profile {"firstName": "Ada"`,
		`ada: PUT /v1/users/me/profile {"firstname": "Ada", "lastName": "King", "displayName": "Ada King"}`,
		`ada: PUT /v1/users/me/profile {"firstName": 7, "lastName": "", "displayName": "Ada King", "gender": "FEMALE"}`,
		`ada: PUT /v1/users/me/profile {"firstName": "Ada", "firstName": "Eve", "lastName": "King", "displayName": "Ada King"}`,
		`ada: PUT /v1/users/me/profile {"firstName": "Ada", "lastName": "King", "displayName": "Ada King", "preferredLanguage": "en-Latn-US-x"}`,
		`admin: POST /v1/users/human {"userName": "eve", "profile": {"firstName": "Eve", "lastName": "Doe"}, "email": {"email": "Eve <eve@example.org>"}, "phone": {"phone": "044 555 01 23"}}`,
		`admin: POST /v1/orgs/_setup {"org": {"name": "New", "domain": "acme.example"}, "human": {"userName": "eve", "password": "x", "profile": {"firstName": "Eve", "lastName": "Doe"}, "email": {"email": "eve@example.org"}}}`,
		`admin: POST /v1/orgs/_setup {"org": {"name": "New"}, "roles": ["ADMIN"], "human": {"userName": "eve", "password": "x", "profile": {"firstName": "Eve", "lastName": "Doe"}, "email": {"email": "eve@example.org"}}}`,
		"admin: GET /v1/users?pageSize=1000",
		"admin: GET /v1/users?page=2",
		"admin: GET /v1/users?pageToken=2",
		"admin: GET /v1/events?from=yesterday",
		`ada: PUT /v1/users/me/profile [if-match: W/"1"] {"firstName": "Ada", "lastName": "King", "displayName": "Ada King"}`,
		`ada: PUT /v1/users/me/profile [if-match: 99] {"firstName": "Ada", "lastName": "King", "displayName": "Ada King"}`,
	}},
	{"Tokens and passwords", []string{
		"nobody: GET /v1/users/me",
		"nobody: GET /v1/users/me [authorization: Basic YWRhOmFkYQ==]",
		"nobody: GET /v1/users/me [authorization: Bearer sgn_pat_cutoff]",
		"nobody: GET /v1/users/me [authorization: Bearer $UNKNOWN]",
		`nobody: POST /v1/sessions {"loginName": "ada@acme.example", "password": "wrong"}`,
		`nobody: POST /v1/sessions {"loginName": "nobody@acme.example", "password": "wrong"}`,
		"new: GET /v1/users/me",
		`ada: PUT /v1/users/me/password {"currentPassword": "wrong", "newPassword": "a much better one"}`,
		`ada: PUT /v1/users/me/password {"currentPassword": "Correct-Horse-1", "newPassword": "short"}`,
		`ada: PUT /v1/users/me/password {"currentPassword": "Correct-Horse-1", "newPassword": "password1"}`,
	}},
	{"Rights", []string{
		"bob: GET /v1/users",
		"ada: GET /v1/orgs",
		`ada: POST /v1/orgs/_setup {"org": {"name": "Mine"}, "human": {"userName": "eve", "password": "x", "profile": {"firstName": "Eve", "lastName": "Doe"}, "email": {"email": "eve@example.org"}}}`,
		"ada: GET /v1/users [x-service-orgid: $DEFAULT]",
		"admin: GET /v1/users [x-service-orgid: org_nothing]",
		"admin: GET /v1/users [x-service-org-id: $ACME]",
		"admin: GET /v1/users/$BOB",
		"ada: GET /v1/users/usr_nothing",
		"ada: DELETE /v1/orgs/$ACME/members/$ADA",
		"admin: DELETE /v1/orgs/$DEFAULT",
		`ada: POST /v1/users/$BOB/_reactivate {}`,
	}},
	{"Applications", []string{
		`ada: POST /v1/apps {"name": "Shop", "type": "APPLICATION_TYPE_WEB"}`,
		`ada: POST /v1/apps {"name": "Shop", "type": "WEB", "redirectUris": ["https://shop.example/callback"]}`,
		`ada: POST /v1/apps {"name": "Shop", "type": "APPLICATION_TYPE_WEB", "redirectUris": ["http://shop.example/callback"]}`,
		`ada: POST /v1/apps {"name": "Shop", "type": "APPLICATION_TYPE_WEB", "redirectUris": ["https://shop.example/*"]}`,
		"nobody: GET /oauth/authorize?response_type=code",
		"nobody: GET /oauth/authorize?client_id=app_nothing&response_type=code&redirect_uri=https://shop.example/callback",
		"nobody: GET /oauth/authorize?client_id=$WEB&response_type=code&redirect_uri=https://shop.example/other",
		"nobody: GET /oauth/authorize?client_id=$WEB&response_type=token&scope=openid&redirect_uri=https://shop.example/callback",
		"nobody: POST /oauth/token grant_type=authorization_code&code=nothing&redirect_uri=https://shop.example/callback&client_id=$WEB&client_secret=wrong",
		"nobody: POST /oauth/token grant_type=authorization_code&code=nothing&redirect_uri=https://shop.example/callback&client_id=$WEB",
		"nobody: POST /oauth/token grant_type=authorization_code&code=nothing&redirect_uri=https://shop.example/callback&client_id=$WEB&client_secret=$SECRET",
		"nobody: POST /oauth/token grant_type=password&username=ada&password=x&client_id=$WEB&client_secret=$SECRET",
		"nobody: POST /oauth/token grant_type=refresh_token&refresh_token=nothing&client_id=$WEB&client_secret=$SECRET",
		"nobody: POST /oauth/par response_type=code&client_id=$WEB&client_secret=$SECRET&redirect_uri=https://shop.example/other",
		"nobody: GET /oauth/authorize?client_id=$WEB&request_uri=urn:ietf:params:oauth:request_uri:nothing",
		"nobody: POST /oauth/token [dpop: nothing] grant_type=authorization_code&code=nothing&redirect_uri=https://shop.example/callback&client_id=$WEB&client_secret=$SECRET",
		`nobody: POST /oauth/token {"grant_type": "authorization_code"}`,
		"nobody: GET /oauth/userinfo",
	}},
}

func TestMistakesOfABeginner(t *testing.T) {
	b := newBeginner(t)
	out := bytes.NewBufferString("# Mistakes, and what Signet says\n\n" +
		"A request is written as who sends it, method, path, headers in brackets and body. A test keeps this page true.\n")
	total := 0
	for _, group := range mistakes {
		fmt.Fprintf(out, "\n## %s\n\n| typed | said |\n|---|---|\n", group.title)
		for _, typed := range group.typed {
			said := b.say(t, typed)
			if said == "" {
				t.Errorf("%s: nothing was said", typed)
			}
			cell := strings.NewReplacer("|", `\|`, "\n", " ", "`", "'")
			fmt.Fprintf(out, "| `%s` | %s |\n", cell.Replace(typed), cell.Replace(said))
			total++
		}
	}
	if total < 60 {
		t.Errorf("only %d mistakes", total)
	}
	if os.Getenv("SIGNET_UPDATE_DOCS") != "" {
		testkit.Must(t, os.WriteFile(mistakesFile, out.Bytes(), 0o644))
	}
	if !bytes.Equal(readFile(t, mistakesFile), out.Bytes()) {
		t.Errorf("%s is not up to date: look at what changed, and write it with SIGNET_UPDATE_DOCS=1\n%s",
			mistakesFile, out)
	}
}

// beginner is somebody with a server, some people and an application.
type beginner struct {
	p      *process
	tokens map[string]string
	words  map[string]string // what words like $WEB stand for
}

func newBeginner(t *testing.T) *beginner {
	s := embedded(t)
	p := s.start(t)
	admin := s.admin(t)
	c := newClient(t, p, admin.Token)
	setUp := newOrg("Acme", "Correct-Horse-1")
	setUp["org"].(object)["domain"] = "acme.example"
	setUp["human"].(object)["userName"] = "ada"
	acme := c.want(t, 200, "POST", "/v1/orgs/_setup", setUp)
	org := at[string](t, acme, "orgId")
	b := &beginner{p: p, tokens: map[string]string{"admin": admin.Token, "nobody": "",
		"ada": c.signIn(t, "ada@acme.example", "Correct-Horse-1")}}
	ada := c.with(b.tokens["ada"])
	bob := at[string](t, ada.want(t, 200, "POST", "/v1/users/human", colleague("bob", true)), "userId")
	ada.want(t, 200, "POST", "/v1/users/human", colleague("new", false))
	b.tokens["bob"], b.tokens["new"] = c.signIn(t, "bob@acme.example", "Correct-Horse-2"),
		c.signIn(t, "new@acme.example", "Correct-Horse-2")
	app := ada.want(t, 200, "POST", "/v1/apps",
		object{"name": "Shop", "type": "APPLICATION_TYPE_WEB",
			"redirectUris": []string{"https://shop.example/callback"}})
	unknown, _ := secret.NewToken(secret.PAT)
	b.words = map[string]string{
		"$RUNNING": p.listen,
		"$USED":    s.dir,
		"$EMPTY":   filepath.Join(t.TempDir(), "empty"),
		"$DIR":     t.TempDir(),
		"$DEFAULT": admin.OrgID,
		"$ACME":    org,
		"$BOB":     bob,
		"$ADA":     at[string](t, acme, "userId"),
		"$WEB":     at[string](t, app, "appId"),
		"$SECRET":  at[string](t, app, "clientSecret"),
		"$UNKNOWN": unknown,
	}
	writeFile(t, filepath.Join(b.words["$DIR"], "people.txt"), "eve\n", 0o600)
	return b
}

func colleague(name string, done bool) object {
	return object{
		"userName":         name,
		"password":         "Correct-Horse-2",
		"noChangeRequired": done,
		"email":            object{"email": name + "@example.org"},
		"profile":          object{"firstName": name, "lastName": "Doe"},
	}
}

// say does what somebody has typed, and gives what is said about it.
func (b *beginner) say(t *testing.T, typed string) string {
	t.Helper()
	var forth, back []string
	for _, word := range slices.Sorted(maps.Keys(b.words)) {
		forth, back = append(forth, word, b.words[word]), append(back, b.words[word], word)
	}
	input := strings.NewReplacer(forth...).Replace(typed)
	said := ""
	if caller, request, found := strings.Cut(input, ": "); found && !strings.Contains(caller, "signet") {
		said = b.request(t, b.tokens[caller], request)
	} else {
		said = command(t, input)
	}
	return requestID.ReplaceAllString(strings.NewReplacer(back...).Replace(said), "…")
}

var requestID = regexp.MustCompile(`[A-Z2-7]{26}`)

// command runs what was typed in a shell.
func command(t *testing.T, input string) string {
	t.Helper()
	words := strings.Fields(input)
	var env []string
	for strings.Contains(words[0], "=") {
		env, words = append(env, words[0]), words[1:]
	}
	args := words[1:]
	if args[0] == "start" && !slices.Contains(args, "--data-dir") {
		args = append(args, "--data-dir", filepath.Join(t.TempDir(), "data"))
	}
	if args[0] == "start" && !slices.Contains(args, "--listen") {
		args = append(args, "--listen", "localhost:0")
	}
	r := run(t, env, args...)
	return strings.TrimSpace(r.stderr)
}

var header = regexp.MustCompile(`\[([a-z-]+): ([^\]]*)\] ?`)

// request sends what was typed over HTTP.
func (b *beginner) request(t *testing.T, token, input string) string {
	t.Helper()
	headers := header.FindAllStringSubmatch(input, -1)
	parts := strings.SplitN(strings.TrimSpace(header.ReplaceAllString(input, "")), " ", 3)
	body := ""
	if len(parts) == 3 {
		body = parts[2]
	}
	r, err := http.NewRequestWithContext(t.Context(), parts[0], b.p.url+parts[1], strings.NewReader(body))
	testkit.Must(t, err)
	switch {
	case body != "" && body[0] == '{':
		r.Header.Set("Content-Type", "application/json")
	case body != "":
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range headers {
		r.Header.Set(h[1], h[2])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	testkit.Must(t, err)
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	return fmt.Sprint(resp.StatusCode, " ", words(t, resp, content))
}

var (
	heading = regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)
	notice  = regexp.MustCompile(`(?s)<p class="notice">(.*?)</p>`)
	tag     = regexp.MustCompile(`<[^>]*>`)
)

// words are what an answer says: an error of the API, of OAuth, one that an application is sent, or a page for people.
func words(t *testing.T, resp *http.Response, content []byte) string {
	t.Helper()
	if at := resp.Header.Get("Location"); at != "" {
		u, err := url.Parse(at)
		testkit.Must(t, err)
		return u.Query().Get("error") + ": " + u.Query().Get("error_description")
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		plain := func(re *regexp.Regexp) string {
			if m := re.FindSubmatch(content); m != nil {
				return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(string(m[1]), ""))), " ")
			}
			return ""
		}
		return plain(heading) + ". " + plain(notice)
	}
	var said struct {
		Message, Error   string
		ErrorDescription string `json:"error_description"`
		Details          []struct {
			Reason          string
			FieldViolations []struct{ Field, Description string }
		}
	}
	if err := json.Unmarshal(content, &said); err != nil {
		return resp.Header.Get("Www-Authenticate")
	}
	if said.Error != "" {
		return said.Error + ": " + said.ErrorDescription
	}
	text := said.Message
	for _, d := range said.Details {
		if d.Reason != "" {
			text = d.Reason + ": " + text
		}
	}
	return text
}
