//go:build rolling

package rolling

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/html"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

var (
	opMe       = operation{"UserService/GetMyUser", "GET", "/v1/users/me"}
	opProfile  = operation{"UserService/UpdateMyProfile", "PUT", "/v1/users/me/profile"}
	opSetup    = operation{"OrganizationService/SetupOrganization", "POST", "/v1/orgs/_setup"}
	opSignIn   = operation{"SessionService/CreateSession", "POST", "/v1/sessions"}
	opAddHuman = operation{"UserService/AddHumanUser", "POST", "/v1/users/human"}
)

func opPassword(user string) operation {
	return operation{"UserService/SetUserPassword", "POST", "/v1/users/" + user + "/password"}
}

// load is 64 callers and two readers of streams, and what they have seen.
type load struct {
	t       *testing.T
	c       *cluster
	ctx     context.Context
	stop    context.CancelFunc
	work    []func() // of each caller
	callers sync.WaitGroup
	readers sync.WaitGroup

	following context.Context // of the readers: they go on when the callers have stopped

	mu       sync.Mutex
	requests int
	repeated map[string]int // refusals that a client may repeat
	unknown  int            // of them, with an unknown outcome
	consoles int            // how often the console was used
	longest  time.Duration  // from the first try of a request to its success

	writers   []*writer
	orgs      map[string]bool // names, and whether setting it up was acknowledged
	passwords []*passwords
	streams   []*reader
}

func newLoad(c *cluster) *load {
	l := &load{t: c.t, c: c, repeated: map[string]int{}, orgs: map[string]bool{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	var unfollow context.CancelFunc
	l.following, unfollow = context.WithCancel(context.Background())
	c.t.Cleanup(func() { l.stop(); unfollow(); l.callers.Wait(); l.readers.Wait() })
	return l
}

// pause is between two requests of a caller, so that there is time for all of them on a small machine.
const pause = 25 * time.Millisecond

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// persist repeats a request as the rule allows, until it succeeds. doubtful tells that an earlier try may have been
// done.
func (l *load) persist(what string, try func(doubtful bool) *refusal) bool {
	began, doubtful := time.Now(), false
	for time.Since(began) < patience {
		if l.ctx.Err() != nil {
			return false
		}
		r := try(doubtful)
		l.mu.Lock()
		l.requests++
		if r == nil {
			l.longest = max(l.longest, time.Since(began))
			l.mu.Unlock()
			return true
		}
		if l.ctx.Err() == nil {
			l.repeated[what+": "+r.String()]++
			if r.repeat == unknown {
				l.unknown++
				l.t.Logf("%s: %s: %s", what, r, r.text)
			}
		}
		l.mu.Unlock()
		doubtful = doubtful || r.repeat == unknown
		if r.repeat == never {
			if l.ctx.Err() == nil {
				l.t.Errorf("%s: %s: %s", what, r, r.text)
			}
			return false
		}
		wait(l.ctx, max(r.after, 100*time.Millisecond))
	}
	l.t.Errorf("%s: in vain for %v", what, patience)
	return false
}

// each adds a caller that calls until the load ends or it fails.
func (l *load) each(do func(n int) bool) {
	l.work = append(l.work, func() {
		for n := 1; l.ctx.Err() == nil && do(n); n++ {
			wait(l.ctx, pause)
		}
	})
}

// begin adds the people and lets everybody call: 64 callers.
func (l *load) begin() {
	for i, w := range l.ways() {
		for j := range 4 {
			l.writes(w, fmt.Sprintf("writer-%d-%d", i, j))
		}
		for j := range 3 {
			_, token := l.person(fmt.Sprintf("reader-%d-%d", i, j))
			l.each(func(int) bool {
				return l.persist("reading over "+w.String(), func(bool) *refusal {
					_, r := call[signetv1.GetMyUserRequest, signetv1.GetMyUserResponse](l.ctx, w, opMe, token,
						&signetv1.GetMyUserRequest{})
					return r
				})
			})
		}
		l.setsUp(w, i)
		l.setsPasswords(w, i)
		l.signsIn(w, fmt.Sprint("visitor-", i))
	}
	for _, w := range l.ways() {
		if w.protocol == rest {
			for j := range 2 {
				l.usesConsole(w, fmt.Sprintf("console-%s-%d", w.name, j))
			}
		}
	}
	if len(l.work) != 64 {
		l.t.Fatalf("there are %d callers", len(l.work))
	}
	for _, work := range l.work {
		l.callers.Go(work)
	}
	l.follows(l.ways()[0])               // REST through nginx
	l.follows(l.ways()[len(l.ways())-2]) // gRPC through HAProxy
}

func (l *load) ways() (all []way) {
	for _, p := range l.c.proxies {
		for _, protocol := range []string{rest, grpc, grpcWeb} {
			all = append(all, way{p, protocol, strings.TrimPrefix(l.c.external, "https://")})
		}
	}
	return all
}

const password = "a password of the tests"

func human(name string) *signetv1.AddHumanUserRequest {
	raw := fmt.Sprintf(`{"userName":%q,"password":%q,"noChangeRequired":true,"email":{"email":%q,"isEmailVerified":true},"profile":{"firstName":"A","lastName":"Person"}}`, name, password, name+"@mail.example")
	request := &signetv1.AddHumanUserRequest{}
	if err := protojson.Unmarshal([]byte(raw), request); err != nil {
		panic(err)
	}
	return request
}

// person adds somebody and signs them in.
func (l *load) person(name string) (id, token string) {
	l.t.Helper()
	w := l.ways()[0]
	added, r := call[signetv1.AddHumanUserRequest, signetv1.AddHumanUserResponse](l.ctx, w, opAddHuman,
		l.c.token, human(name))
	if r != nil {
		l.t.Fatalf("%s: %s", r, r.text)
	}
	token, r = l.signIn(w, name, password)
	if r != nil {
		l.t.Fatalf("%s: %s", r, r.text)
	}
	return added.GetUserId(), token
}

func (l *load) signIn(w way, name, password string) (string, *refusal) {
	answer, r := call[signetv1.CreateSessionRequest, signetv1.CreateSessionResponse](l.ctx, w, opSignIn, "",
		&signetv1.CreateSessionRequest{LoginName: name + "@mail.example", Password: password})
	return answer.GetToken(), r
}

// writer changes a profile, one value after the other.
type writer struct {
	id    string
	acked int
}

func (l *load) writes(w way, name string) {
	id, token := l.person(name)
	me := &writer{id: id}
	l.writers = append(l.writers, me)
	read := func() (*signetv1.User, *refusal) {
		answer, r := call[signetv1.GetMyUserRequest, signetv1.GetMyUserResponse](l.ctx, w, opMe, token,
			&signetv1.GetMyUserRequest{})
		return answer.GetUser(), r
	}
	before, r := read()
	if r != nil {
		l.t.Fatalf("%s: %s", r, r.text)
	}
	sequence := before.GetDetails().GetSequence()
	l.each(func(n int) bool {
		value := strconv.Itoa(n)
		return l.persist("changing a profile over "+w.String(), func(doubtful bool) *refusal {
			answer, r := call[signetv1.UpdateMyProfileRequest, signetv1.UpdateMyProfileResponse](l.ctx, w,
				opProfile, token,
				&signetv1.UpdateMyProfileRequest{FirstName: "A", LastName: "Person", DisplayName: "A Person",
					NickName: &value}, "If-Match", strconv.FormatUint(uint64(sequence), 10))
			if doubtful && r != nil && r.reason == "SEQUENCE_MISMATCH" {
				now, r := read()
				if r != nil {
					return r
				}
				if got := now.GetHuman().GetProfile().GetNickName(); got != value {
					return refused("", "", "the profile says "+got+" instead of "+value)
				}
				sequence, me.acked = now.GetDetails().GetSequence(), n
				return nil
			}
			if r == nil {
				sequence, me.acked = answer.GetDetails().GetSequence(), n
			}
			return r
		})
	})
}

// setsUp sets up organizations with an idempotency key each.
func (l *load) setsUp(w way, caller int) {
	l.each(func(n int) bool {
		name := fmt.Sprintf("Organization %d of %d", n, caller)
		l.mu.Lock()
		l.orgs[name] = false
		l.mu.Unlock()
		ok := l.persist("setting up an organization over "+w.String(), func(bool) *refusal {
			_, r := call[signetv1.SetupOrganizationRequest, signetv1.SetupOrganizationResponse](l.ctx, w, opSetup,
				l.c.token, &signetv1.SetupOrganizationRequest{
					Org: &signetv1.SetupOrganizationRequest_Org{Name: name},
					Human: &signetv1.SetupOrganizationRequest_Human{
						UserName: "owner",
						Password: password,
						Email:    &signetv1.SetupOrganizationRequest_Human_Email{Email: "owner@example.com"},
						Profile:  &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "An", LastName: "Owner"},
					},
				},
				"Idempotency-Key", strings.ReplaceAll(name, " ", "-"))
			return r
		})
		l.mu.Lock()
		l.orgs[name] = ok
		l.mu.Unlock()
		return ok
	})
}

// passwords are those that were set for somebody, one after the other.
type passwords struct {
	id, name         string
	acked, uncertain int
}

func (l *load) setsPasswords(w way, caller int) {
	name := fmt.Sprint("password-", caller)
	id, _ := l.person(name)
	me := &passwords{id: id, name: name}
	l.passwords = append(l.passwords, me)
	l.each(func(n int) bool {
		return l.persist("setting a password over "+w.String(), func(bool) *refusal {
			_, r := call[signetv1.SetUserPasswordRequest, signetv1.SetUserPasswordResponse](l.ctx, w, opPassword(id),
				l.c.token, &signetv1.SetUserPasswordRequest{UserId: id, Password: fmt.Sprint(password, " ", n),
					NoChangeRequired: true})
			if r == nil {
				me.acked = n
			} else if r.repeat == unknown || l.ctx.Err() != nil {
				me.uncertain++
			}
			return r
		})
	})
}

// signsIn signs in and uses the session at once, on whichever node.
func (l *load) signsIn(w way, name string) {
	l.person(name)
	l.each(func(int) bool {
		token := ""
		return l.persist("signing in over "+w.String(), func(bool) (r *refusal) {
			token, r = l.signIn(w, name, password)
			return r
		}) && l.persist("using a session over "+w.String(), func(bool) *refusal {
			_, r := call[signetv1.GetMyUserRequest, signetv1.GetMyUserResponse](l.ctx, w, opMe, token,
				&signetv1.GetMyUserRequest{})
			return r
		})
	})
}

// usesConsole signs in on the pages and does what the console does.
func (l *load) usesConsole(w way, name string) {
	l.person(name)
	cookies := l.visit(w, name)
	l.each(func(int) bool {
		token := ""
		return l.persist("opening the console through "+w.name, func(bool) *refusal {
			_, r := w.send(l.ctx, "GET", "/console/", nil)
			return r
		}) && l.persist("a token of the console through "+w.name, func(bool) *refusal {
			raw, r := w.send(l.ctx, "POST", "/console/token", []byte("{}"), "Content-Type", "application/json",
				"Origin", l.c.external, "Sec-Fetch-Site", "same-origin", "Cookie", cookies)
			var answer struct{ Token string }
			if r == nil && (json.Unmarshal(raw, &answer) != nil || answer.Token == "") {
				return refused("", "", "no token in "+string(raw))
			}
			token = answer.Token
			return r
		}) && l.persist("GetMyAccess of the console through "+w.name, func(bool) *refusal {
			_, r := w.send(l.ctx, "GET", "/v1/users/me/access", nil, "Authorization", "Bearer "+token)
			if r == nil {
				l.mu.Lock()
				l.consoles++
				l.mu.Unlock()
			}
			return r
		})
	})
}

// account is the page that people come to after the sign-in.
const account = "/account"

// visit fills in the pages of the sign-in and gives the cookies of the browser.
func (l *load) visit(w way, name string) string {
	l.t.Helper()
	jar, answers := map[string]string{}, map[string]string{"loginName": name + "@mail.example", "password": password}
	cookies := func() string {
		var all []string
		for name, value := range jar {
			all = append(all, name+"="+value)
		}
		return strings.Join(all, "; ")
	}
	method, path, form := http.MethodGet, "/login?to="+account, url.Values{}
	for range 10 {
		raw, resp, r := w.exchange(l.ctx, method, path, []byte(form.Encode()), "Content-Type",
			"application/x-www-form-urlencoded", "Origin", l.c.external, "Sec-Fetch-Site", "same-origin",
			"Cookie", cookies())
		if r != nil {
			l.t.Fatalf("%s: %s: %s", path, r, r.text)
		}
		for _, c := range resp.Cookies() {
			jar[c.Name] = c.Value
		}
		if to := resp.Header.Get("Location"); to != "" {
			next, err := url.Parse(to)
			must(l.t, err)
			if method, path, form = http.MethodGet, next.RequestURI(), nil; strings.HasPrefix(path, account) {
				return cookies()
			}
			continue
		}
		page, err := html.Parse(strings.NewReader(string(raw)))
		must(l.t, err)
		method, form = http.MethodPost, formOf(page, answers)
	}
	l.t.Fatalf("the sign-in comes to no end at %s: %v", path, form)
	return ""
}

// formOf gives what the first form of a page sends.
func formOf(page *html.Node, answers map[string]string) url.Values {
	form, forms := url.Values{}, 0
	for element := range page.Descendants() {
		attributes := map[string]string{}
		for _, a := range element.Attr {
			attributes[a.Key] = a.Val
		}
		name := attributes["name"]
		switch {
		case element.Type != html.ElementNode:
		case element.Data == "form":
			forms++
		case forms == 1 && (element.Data == "input" || element.Data == "button") && name != "" && !form.Has(name):
			form.Set(name, attributes["value"])
			if typed, known := answers[name]; known {
				form.Set(name, typed)
			}
		}
	}
	return form
}

// reader follows all events and resumes by its cursor.
type reader struct {
	mu      sync.Mutex
	seen    map[string]int
	resumed map[string]int // by why the stream ended
}

func (s *reader) saw(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[id]++
}

func (l *load) follows(w way) {
	s := &reader{seen: map[string]int{}, resumed: map[string]int{}}
	l.streams = append(l.streams, s)
	ctx := l.following
	l.readers.Go(func() {
		cursor := ""
		for ctx.Err() == nil {
			var r *refusal
			if w.protocol == rest {
				r = s.followREST(ctx, w, l.c.token, &cursor)
			} else {
				r = s.followGRPC(ctx, w, l.c.token, &cursor)
			}
			if ctx.Err() != nil {
				return
			}
			s.mu.Lock()
			s.resumed[r.String()]++
			s.mu.Unlock()
			if r.repeat == never {
				l.t.Errorf("an event stream over %s: %s: %s", w, r, r.text)
				return
			}
			wait(ctx, 100*time.Millisecond)
		}
	})
}

func (s *reader) followGRPC(ctx context.Context, w way, token string, cursor *string) *refusal {
	client := connect.NewClient[signetv1.StreamEventsRequest, signetv1.StreamEventsResponse](w.client,
		w.url+"/signet.v1.EventService/StreamEvents", connect.WithGRPC())
	request := connect.NewRequest(&signetv1.StreamEventsRequest{AllOrganizations: true, Cursor: *cursor,
		From: timestamppb.New(time.Unix(1, 0))})
	request.Header().Set("Authorization", "Bearer "+token)
	stream, err := client.CallServerStream(ctx, request)
	if err != nil {
		return ofConnect(err)
	}
	defer stream.Close()
	for stream.Receive() {
		if e := stream.Msg().GetEvent(); e != nil {
			s.saw(e.GetEventId())
		}
		*cursor = stream.Msg().GetCursor()
	}
	if stream.Err() == nil {
		return refused("", "connection", "the stream ended without a word")
	}
	return ofConnect(stream.Err())
}

func (s *reader) followREST(ctx context.Context, w way, token string, cursor *string) *refusal {
	r, err := http.NewRequestWithContext(ctx, "GET",
		w.url+"/v1/events/_stream?allOrganizations=true&from=1970-01-02T00:00:00Z", nil)
	if err != nil {
		return refused("", "", err.Error())
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if *cursor != "" {
		r.Header.Set("Last-Event-Id", *cursor)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return refused("", "connection", err.Error())
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	if resp.StatusCode != http.StatusOK {
		lines.Scan()
		return ofREST(resp.StatusCode, lines.Bytes())
	}
	var data []byte
	failed := false
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			failed = value == "error"
		case "data":
			data = []byte(value)
		case "id": // comes last: the message is whole
			var m struct{ Event struct{ EventID string } }
			if data != nil && json.Unmarshal(data, &m) == nil && m.Event.EventID != "" {
				s.saw(m.Event.EventID)
			}
			data, *cursor = nil, value
		}
		if failed && data != nil {
			return ofREST(http.StatusServiceUnavailable, data)
		}
	}
	return refused("", "connection", fmt.Sprint("the stream ended: ", lines.Err()))
}

// settle ends the callers and checks that nothing was lost or doubled.
func (l *load) settle() {
	t := l.t
	l.stop()
	l.callers.Wait()
	w := l.ways()[0]
	events := l.events(w)
	t.Logf("%d requests, %d events; the longest a caller waited for an answer, with all tries: %v", l.requests,
		len(events), l.longest.Round(time.Millisecond))
	for _, what := range slices.Sorted(maps.Keys(l.repeated)) {
		t.Logf("repeated %d times: %s", l.repeated[what], what)
	}
	if l.consoles == 0 {
		t.Error("nobody has used the console")
	}
	t.Logf("the console was used %d times", l.consoles)
	byReason := map[string]int{}
	for what, n := range l.repeated {
		_, reason, _ := strings.Cut(what, ": ")
		byReason[reason] += n
	}
	t.Logf("repeated in all: %v", byReason)
	t.Logf("of them, %d have an unknown outcome", l.unknown)
	l.checkProfiles(events)
	l.checkPasswords(events)
	l.checkOrganizations(w)
	for _, s := range l.streams {
		for end := time.Now().Add(patience); time.Now().Before(end); wait(context.Background(), 50*time.Millisecond) {
			s.mu.Lock()
			n := len(s.seen)
			s.mu.Unlock()
			if n >= len(events) {
				break
			}
		}
		s.mu.Lock()
		doubled, lost := 0, 0
		for _, e := range events {
			switch s.seen[e.EventID] {
			case 1:
			case 0:
				lost++
			default:
				doubled++
			}
		}
		if lost > 0 || doubled > 0 {
			t.Errorf("a stream missed %d events and saw %d more than once", lost, doubled)
		}
		t.Logf("a stream saw each of %d events once; resumed: %v", len(events), s.resumed)
		s.mu.Unlock()
	}
}

type seenEvent struct {
	EventID, ObjectID, Type string
	Personal                struct{ NickName any }
}

// events lists the whole log.
func (l *load) events(w way) (all []seenEvent) {
	for token := ""; ; {
		raw, r := w.send(context.Background(), "GET",
			"/v1/events?allOrganizations=true&order=EVENT_ORDER_OLDEST_FIRST&pageSize=500&pageToken="+
				url.QueryEscape(token), nil, "Authorization", "Bearer "+l.c.token)
		if r != nil {
			l.t.Fatalf("%s: %s", r, r.text)
		}
		var page struct {
			Events        []seenEvent
			NextPageToken string
		}
		must(l.t, json.Unmarshal(raw, &page))
		all = append(all, page.Events...)
		if token = page.NextPageToken; token == "" {
			return all
		}
	}
}

func (l *load) checkProfiles(events []seenEvent) {
	written := map[string][]string{}
	for _, e := range events {
		if e.Type == "user.profile_changed.v1" {
			written[e.ObjectID] = append(written[e.ObjectID],
				strings.Trim(fmt.Sprint(e.Personal.NickName), "map[to:] "))
		}
	}
	total := 0
	for _, w := range l.writers {
		total += w.acked
		got := written[w.id]
		if len(got) != w.acked && len(got) != w.acked+1 { // the last one was on its way when the load ended
			l.t.Errorf("%s: %d changes were acknowledged, and %d are in the log", w.id, w.acked, len(got))
			continue
		}
		for i, value := range got {
			if value != strconv.Itoa(i+1) {
				l.t.Errorf("%s: change %d is %q", w.id, i+1, value)
				break
			}
		}
	}
	l.t.Logf("%d changes of profiles acknowledged, each once in the log", total)
}

func (l *load) checkPasswords(events []seenEvent) {
	set, total := map[string]int{}, 0
	for _, e := range events {
		if strings.HasPrefix(e.Type, "user.password") {
			set[e.ObjectID]++
		}
	}
	for _, p := range l.passwords {
		total += p.acked
		if p.acked == 0 {
			l.t.Errorf("no password of %s was set", p.name)
			continue
		}
		if n := set[p.id] - 1; n < p.acked || n > p.acked+p.uncertain { // the first came with the user
			l.t.Errorf("%s: %d passwords were acknowledged, %d uncertain, and %d are in the log", p.name, p.acked,
				p.uncertain, n)
		}
	}
	l.t.Logf("%d passwords set", total)
}

func (l *load) checkOrganizations(w way) {
	found, acked := map[string]int{}, 0
	for token := ""; ; {
		raw, r := w.send(context.Background(), "GET", "/v1/orgs?pageSize=500&pageToken="+url.QueryEscape(token), nil,
			"Authorization", "Bearer "+l.c.token)
		if r != nil {
			l.t.Fatalf("%s: %s", r, r.text)
		}
		var page struct {
			Orgs, Organizations []struct{ Name string }
			NextPageToken       string
		}
		must(l.t, json.Unmarshal(raw, &page))
		for _, o := range append(page.Orgs, page.Organizations...) {
			found[o.Name]++
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	for name, ok := range l.orgs {
		if ok {
			acked++
		}
		if n := found[name]; n > 1 || ok && n != 1 {
			l.t.Errorf("%s is there %d times; acknowledged: %v", name, n, ok)
		}
	}
	l.t.Logf("%d organizations set up, each once", acked)
}
