package program

import (
	"bytes"
	"cmp"
	"compress/gzip"
	encoding "encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/transport/web"
	"github.com/signet-idm/signet/test/costtest"
)

// The largest that is read of each part of a request.
const (
	largestBody   = 1<<20 - 512
	largestForm   = 64<<10 - 512
	largestHeader = 30 << 10
)

// probe is a request of the worst kind.
type probe struct {
	name   string
	method string
	path   string
	header http.Header
	body   []byte
	hashes bool // it may hash a password
}

// prober sends probes to a server.
type prober struct {
	t      *testing.T
	p      *process
	client *http.Client
	try    func(endpoint string, p *probe) // sends one and judges it
	sent   int
}

func (x *prober) send(p *probe) (status int) {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), p.method, x.p.url+p.path, bytes.NewReader(p.body))
	if err != nil {
		return 0 // no address at all
	}
	r.Header = p.header.Clone()
	resp, err := x.client.Do(r)
	if err != nil {
		return 0 // the server has had enough of it
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// answered sends a probe and fails if the server fails inside.
func (x *prober) answered(p *probe) {
	x.t.Helper()
	x.sent++
	if status := x.send(p); status >= 500 && status != http.StatusServiceUnavailable {
		x.t.Errorf("%s: status %d", p.name, status)
	}
}

// target is what the probes are sent to: a server, somebody without any role, an application.
type target struct {
	*prober
	token    string // of a session without a role
	clientID string
	callback string
	message  int // how large the messages of operations are at most
}

func newTarget(t *testing.T, s *site) *target {
	t.Helper()
	p := s.start(t, "--starts-per-minute", "1000000", "--limit-public", "off")
	admin := newClient(t, p, s.admin(t).Token)
	admin.want(t, 200, "POST", "/v1/users/human", object{
		"userName":         "nobody",
		"password":         "a password of nobody",
		"noChangeRequired": true,
		"profile":          object{"firstName": "No", "lastName": "Body"},
		"email":            object{"email": "nobody@example.com", "isEmailVerified": true},
	})
	callback := "http://localhost/callback"
	app := admin.want(t, 200, "POST", "/v1/apps", object{
		"name":         "Shop",
		"type":         "APPLICATION_TYPE_NATIVE",
		"redirectUris": []string{callback},
		"grantTypes":   []string{"GRANT_TYPE_AUTHORIZATION_CODE", "GRANT_TYPE_REFRESH_TOKEN", "GRANT_TYPE_DEVICE_CODE"},
	})
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	x := &target{prober: &prober{t: t, p: p, client: &http.Client{Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}},
		clientID: at[string](t, app, "appId"), callback: callback, message: math.MaxInt}
	x.token = admin.with("").signIn(t, "nobody", "a password of nobody")
	x.try = func(_ string, p *probe) { x.answered(p) }
	return x
}

func (x *target) bearer() http.Header { return http.Header{"Authorization": {"Bearer " + x.token}} }

// TestTheWorstRequestsAreAnswered sends the worst that can be sent to whatever strangers reach, and whoever is signed in
// without any role: none may fail inside the server. The messages of operations have a tenth of the largest size here;
// `make cost` sends the largest, and judges what they cost.
func TestTheWorstRequestsAreAnswered(t *testing.T) {
	x := newTarget(t, embedded(t))
	x.message = largestBody / 10
	x.sendAll()
}

// sendAll sends all probes. What to send it to follows from the definition, the paths of the server, the fields of its
// pages and the parameters of OAuth, so that what is new is covered without anyone remembering.
func (x *target) sendAll() {
	x.t.Helper()
	for name, probes := range map[string]func(){"attacks": x.attacks, "operations": x.operations, "OAuth": x.oauth,
		"pages": x.pages, "headers": x.headers} {
		before, began := x.sent, time.Now()
		probes()
		x.t.Logf("%s: %d requests in %.1f s", name, x.sent-before, time.Since(began).Seconds())
	}
	if status := x.send(&probe{method: "GET", path: "/v1/users/me", header: x.bearer()}); status != 200 {
		x.t.Errorf("the session did not last: %d", status)
	}
}

// attacks are those that once worked.
func (x *target) attacks() {
	han := func(count int) string { return costtest.Alphabets[0].Text(4 * count) }
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	device := []byte("client_id=" + x.clientID + "&scope=urn:signet:org:domain:" + han(20_900))
	x.try("device", &probe{name: fmt.Sprintf("a device of %d bytes", len(device)), method: "POST",
		path: "/oauth/device_authorization", header: form, body: device})
	x.try("authorize", &probe{name: "a sign-in of 32 KB", method: "GET",
		path: x.authorize("scope", "urn:signet:org:domain:"+han(3400))})
	asJSON := x.bearer()
	asJSON.Set("Content-Type", "application/json")
	domain := han(largestBody / 3)
	x.try("setup", &probe{name: "an organization with a long domain", method: "POST", path: "/v1/orgs/_setup",
		header: asJSON, body: []byte(`{"org":{"name":"a","domain":"` + domain[:largestBody-64] + `"}}`)})
	// Whoever sends it is told what is wrong with it, once.
	c := &client{base: x.p.url, token: x.token, http: x.client}
	answer := c.want(x.t, 400, "POST", "/v1/orgs/any/domains", object{"domain": han(10_000)})
	if says := fmt.Sprint(answer["details"]); strings.Count(says, "must have at most 200 characters") != 1 ||
		strings.Count(says, "description") != 1 {
		x.t.Errorf("a domain that is too long: %s", says)
	}
	x.try("domain", &probe{name: "a long domain", method: "POST", path: "/v1/orgs/any/domains", header: asJSON,
		body: []byte(`{"domain":"` + domain[:largestBody-64] + `"}`)})
}

// operations are those of the API, over REST and gRPC.
func (x *target) operations() {
	operations := costtest.Operations()
	if len(operations) < 100 {
		x.t.Fatalf("only %d operations", len(operations))
	}
	bomb := packed(x.t, 200<<20)
	turn := 0
	for _, o := range operations {
		if o.Method.IsStreamingServer() {
			continue // its request is that of ListEvents
		}
		rule := proto.GetExtension(o.Method.Options(), annotations.E_Http).(*annotations.HttpRule)
		method, path := restOf(rule)
		header := http.Header{}
		if !o.Rule.GetPublic() {
			header = x.bearer()
		}
		name := string(o.Method.Name())
		most := min(x.message, cmp.Or(int(o.Rule.GetMaxBytes()), largestBody+512)-512)
		for _, f := range costtest.Fields(o.Method.Input()) {
			turn++
			hostile := []costtest.Alphabet{costtest.Alphabets[0], costtest.Alphabets[turn%len(costtest.Alphabets)]}
			for _, a := range hostile {
				p := &probe{name: fmt.Sprintf("%s with %s as %s", name, a.Name, f), method: method,
					header: header.Clone(), hashes: f.String() == "password" || f.String() == "loginName"}
				switch inPath := "{" + string(f[0].Name()) + "}"; {
				case strings.Contains(path, inPath):
					p.path = filled(strings.ReplaceAll(path, inPath, url.PathEscape(a.Text(largestHeader/3))))
				case rule.GetBody() == "":
					p.path = filled(path) + "?" + f[0].JSONName() + "=" + url.QueryEscape(a.Text(largestHeader/3))
				default:
					p.path, p.body = filled(path), fitting(most, func(size int) []byte { return f.Body(a.Text(size)) })
					p.header.Set("Content-Type", "application/json")
				}
				x.try(name, p)
			}
			bodies := map[string][]byte{"crowd": f.WireCrowd(most - 64)}
			if turn%3 == 0 { // a text is judged alike whichever way it came
				bodies["text"] = f.Wire(hostile[0].Text(most - 64))
			}
			for kind, body := range bodies {
				if body != nil {
					x.try(name,
						x.grpc(o, fmt.Sprintf("%s over gRPC with a %s as %s", name, kind, f), header, body, false))
				}
			}
			if f.Last().IsList() && rule.GetBody() != "" {
				as := header.Clone()
				as.Set("Content-Type", "application/json")
				x.try(name, &probe{name: name + " with many " + f.String(), method: method, path: filled(path),
					header: as, body: f.Crowd(most - 64)})
			}
		}
		if !o.Rule.GetPublic() && name != "SetMyEmail" && name != "ImportUsers" {
			continue // what follows is the same for all of them
		}
		for kind, body := range costtest.Odd(most - 64) {
			as := header.Clone()
			as.Set("Content-Type", "application/json")
			x.try(name, &probe{name: name + " with " + kind, method: method, path: filled(path),
				header: as, body: body})
		}
		x.try(name, x.grpc(o, name+" with what unpacks to 200 MiB", header, bomb, true))
	}
}

// packed is what unpacks to so many bytes.
func packed(t *testing.T, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(make([]byte, size))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// grpc makes a call of gRPC-Web, which is gRPC as far as reading goes.
func (x *target) grpc(o costtest.Operation, name string, header http.Header, message []byte, packed bool) *probe {
	flag := byte(0)
	h := header.Clone()
	h.Set("Content-Type", "application/grpc-web+proto")
	if packed {
		flag = 1
		h.Set("Grpc-Encoding", "gzip")
	}
	body := append(encoding.BigEndian.AppendUint32([]byte{flag}, uint32(len(message))), message...)
	return &probe{name: name, method: "POST",
		path: fmt.Sprintf("/%s/%s", o.Method.Parent().FullName(), o.Method.Name()), header: h, body: body}
}

// fitting makes a body that is as long as it may be: how long it gets is known only when it is made.
func fitting(most int, body func(size int) []byte) []byte {
	made := body(most - 256)
	if len(made) > most {
		made = body(int(int64(most-256) * int64(most-256) / int64(len(made))))
	}
	return made
}

func restOf(rule *annotations.HttpRule) (method, path string) {
	rule.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if o := fd.ContainingOneof(); o != nil && o.Name() == "pattern" {
			method, path = strings.ToUpper(string(fd.Name())), v.String()
		}
		return true
	})
	return method, path
}

var parameter = regexp.MustCompile(`\{\w+\}`)

// filled puts something into the parameters of a path.
func filled(path string) string { return parameter.ReplaceAllString(path, "any") }

// oauthParameters are the names of all parameters that the provider reads, as its source has them.
func oauthParameters(t *testing.T) []string {
	t.Helper()
	return namesRead(t, readParameter, "../../internal/oauth/oidc/*.go")
}

var readParameter = regexp.MustCompile(`(?:[gG]et|param)\("([a-z_]+)"\)`)

const (
	bearerGrant   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	deviceGrant   = "urn:ietf:params:oauth:grant-type:device_code"
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// authorize is the address of a sign-in that is fine but for one parameter.
func (x *target) authorize(name, value string) string {
	query := url.Values{
		"client_id":             {x.clientID},
		"redirect_uri":          {x.callback},
		"response_type":         {"code"},
		"scope":                 {"openid"},
		"code_challenge_method": {"S256"},
		"code_challenge":        {"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"},
	}
	query.Set(name, value)
	return "/oauth/authorize?" + query.Encode()
}

var scopePrefixes = []string{"urn:signet:org:domain:", "urn:signet:org:id:", "urn:signet:app:"}

func (x *target) oauth() {
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	grants := []string{"authorization_code", "refresh_token", "client_credentials", bearerGrant,
		deviceGrant, exchangeGrant}
	names := oauthParameters(x.t)
	if len(names) < 25 || !slices.Contains(names, "nonce") || !slices.Contains(names, "client_secret") ||
		!slices.Contains(names, "device_code") {
		x.t.Fatalf("the provider reads only %v", names)
	}
	turn := 0
	for _, name := range names {
		for _, prefix := range append([]string{""}, scopePrefixes...) {
			if prefix != "" && name != "scope" {
				continue
			}
			turn++
			for _, a := range []costtest.Alphabet{costtest.Alphabets[0],
				costtest.Alphabets[turn%len(costtest.Alphabets)]} {
				says := fmt.Sprintf(" with %s as %s", a.Name, name+" "+prefix)
				x.try("authorize",
					&probe{name: "authorize" + says, method: "GET",
						path: x.authorize(name, prefix+a.Text(largestHeader/3-100))})
				x.try("logout",
					&probe{name: "logout" + says, method: "GET",
						path: "/oauth/logout?" + url.Values{name: {prefix + a.Text(largestHeader/3-100)}}.Encode()})
				for _, path := range []string{"/oauth/authorize", "/oauth/logout", "/oauth/token",
					"/oauth/par", "/oauth/device_authorization", "/oauth/introspect", "/oauth/revoke", "/oauth/userinfo"} {
					values := url.Values{"client_id": {x.clientID}, "scope": {"openid"}}
					if path == "/oauth/token" {
						values.Set("grant_type", grants[turn%len(grants)])
					}
					p := &probe{name: path + " " + values.Get("grant_type") + says, method: "POST",
						path: path, header: form}
					p.body = fitting(largestForm, func(size int) []byte {
						values.Set(name, prefix+a.Text(size))
						return []byte(values.Encode())
					})
					x.try(path, p)
				}
			}
		}
	}
	own := map[string]string{"authorization_code": "code", "refresh_token": "refresh_token",
		"client_credentials": "scope", bearerGrant: "assertion", deviceGrant: "device_code"}
	for grant, name := range own {
		for _, a := range costtest.Alphabets {
			values := url.Values{"client_id": {x.clientID}, "grant_type": {grant}}
			p := &probe{name: fmt.Sprintf("/oauth/token %s with %s as %s", grant, a.Name, name), method: "POST",
				path: "/oauth/token", header: form}
			p.body = fitting(largestForm, func(size int) []byte {
				values.Set(name, a.Text(size))
				return []byte(values.Encode())
			})
			x.try("/oauth/token", p)
		}
	}
	for _, path := range []string{"/oauth/token", "/oauth/par", "/oauth/device_authorization", "/oauth/introspect",
		"/oauth/revoke", "/oauth/userinfo"} {
		for kind, body := range map[string]string{
			"many parameters": strings.Repeat("a&", largestForm/2), "many different ones": numbered(largestForm),
			"deep names":    strings.Repeat("scope.", largestForm/6) + "=a",
			"a far element": "scope.100000=a&scope.99999999=a",
			"many scopes":   "scope=" + strings.Repeat("a+", largestForm/2),
			"many domains": "client_id=" + x.clientID + "&scope=" +
				strings.Repeat("urn:signet:org:domain:ü.example+", 50),
		} {
			x.try(path, &probe{name: path + " with " + kind, method: "POST", path: path, header: form,
				body: []byte(body)})
		}
	}
}

func numbered(size int) string {
	var out strings.Builder
	for i := 0; out.Len() < size-16; i++ {
		fmt.Fprintf(&out, "a%d=b&", i)
	}
	return out.String()
}

// sitePaths are those that the server has besides the API.
func sitePaths(t *testing.T) []string {
	t.Helper()
	s, err := server.Open(t.Context(),
		server.Config{Data: server.Data{DataDir: filepath.Join(t.TempDir(), "data")}, Listen: "localhost:0"},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Handler().(*web.Front).Next.(*web.Site).Paths()
}

// fieldNames are what the pages read: the fields of their forms and the parameters of their addresses, as their source
// has them.
func fieldNames(t *testing.T) []string {
	t.Helper()
	return namesRead(t, readName, "../../internal/transport/pages/*.go", "../../internal/ui/login/*.go",
		"../../internal/ui/account/*.go")
}

// namesRead are those that an expression finds in source files.
func namesRead(t *testing.T, read *regexp.Regexp, patterns ...string) (names []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			for _, match := range read.FindAllStringSubmatch(string(readFile(t, file)), -1) {
				names = append(names, match[1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var readName = regexp.MustCompile(`(?:\b(?:Field|param)\w+\s+(?:FieldName\s*)?= |Get\(|FormValue\()"(\w+)"`)

func (x *target) pages() {
	names := fieldNames(x.t)
	if len(names) < 20 || !slices.Contains(names, "loginName") || !slices.Contains(names, "request") ||
		!slices.Contains(names, "user_code") {
		x.t.Fatalf("the pages read only %v", names)
	}
	own := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"same-origin"}}
	in := own.Clone()
	in.Set("Cookie", "__Host-signet="+x.token)
	turn := 0
	for _, path := range sitePaths(x.t) {
		if strings.HasPrefix(path, "/oauth/") || strings.HasPrefix(path, "/.well-known/") {
			continue // above
		}
		for _, name := range names {
			turn++
			// The most hostile for half of them, another for the others, in the form or in the address: pages share
			// what they read a field with.
			a := costtest.Alphabets[0]
			if turn%2 == 0 {
				a = costtest.Alphabets[turn/2%len(costtest.Alphabets)]
			}
			header := own
			if strings.HasPrefix(path, "/account") || path == "/device" {
				header = in
			}
			says := fmt.Sprintf("%s with %s as %s", path, a.Name, name)
			if turn%4 < 2 {
				body := fitting(largestForm,
					func(size int) []byte { return []byte(url.Values{name: {a.Text(size)}}.Encode()) })
				x.try(path, &probe{name: says, method: "POST", path: path, header: header, body: body, hashes: true})
			} else {
				x.try(path, &probe{name: says + " in the address", method: "GET",
					path: path + "?" + url.Values{name: {a.Text(largestHeader / 3)}}.Encode(), header: header})
			}
		}
	}
	// A sign-in that is under way takes a name and a password.
	for _, a := range costtest.Alphabets {
		for _, name := range []string{"loginName", "password"} {
			values := url.Values{"loginName": {"nobody"}, "password": {"wrong"}}
			p := &probe{name: fmt.Sprintf("/login with a password and %s as %s", a.Name, name), method: "POST",
				path: "/login", header: own, hashes: true}
			p.body = fitting(largestForm, func(size int) []byte {
				values.Set(name, a.Text(size))
				return []byte(values.Encode())
			})
			x.try("/login", p)
		}
	}
}

// headers are sent to one endpoint of each kind.
func (x *target) headers() {
	names := []string{"Accept", "Accept-Encoding", "Accept-Language", "Access-Control-Request-Method", "Authorization",
		"Content-Type", "Cookie", "Content-Encoding", "Dpop", "Forwarded",
		"Grpc-Encoding", "Grpc-Timeout", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-Id", "Origin",
		"Range", "Sec-Fetch-Site", "Traceparent", "User-Agent",
		"X-Forwarded-For", "X-Request-Id", "X-Service-Orgid"}
	for _, e := range [][2]string{{"POST", "/v1/sessions"}, {"GET", "/v1/users/me"}, {"POST", "/oauth/token"},
		{"GET", "/login"}, {"GET", "/account"}, {"POST", "/signet.v1.SessionService/CreateSession"}} {
		for i, name := range names {
			for _, a := range []costtest.Alphabet{costtest.Alphabets[i%len(costtest.Alphabets)],
				costtest.Alphabets[(i+7)%len(costtest.Alphabets)],
				{Name: "pairs", Text: func(size int) string { return strings.Repeat("a=b; ", size/5) }},
				{Name: "Bearer and Basic",
					Text: func(size int) string { return "Basic " + strings.Repeat("YWE6", size/4) }}} {
				x.try(e[1], &probe{
					name:   fmt.Sprintf("%s %s with %s as %s", e[0], e[1], a.Name, name),
					method: e[0],
					path:   e[1],
					header: http.Header{"Content-Type": {"application/json"}, name: {sendable(a.Text(largestHeader))}},
					body:   []byte("{}"),
				})
			}
		}
		many := http.Header{}
		for i := range 900 {
			many.Set("X-"+strconv.Itoa(i), strings.Repeat("a", 10))
		}
		x.try(e[1], &probe{name: e[1] + " with many headers", method: e[0], path: e[1], header: many})
	}
}

// sendable leaves out what no client sends in a header.
func sendable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}
