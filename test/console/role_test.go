//go:build driving

package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	_ "github.com/signet-idm/signet/gen/signet/v1" // its operations are called by their names
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// roles are those of the API, and none.
var roles = []struct {
	name         string
	installation bool
}{{name: ""}, {name: "ORG_OWNER"}, {name: "ORG_OWNER_VIEWER"}, {name: "ORG_USER_MANAGER"},
	{name: "ORG_SETTINGS_MANAGER"}, {name: "ORG_AUDITOR"},
	{"IAM_OWNER", true}, {"IAM_OWNER_VIEWER", true}, {"IAM_ORG_MANAGER", true}, {"IAM_SUPPORT", true}}

// Whoever signs in with a role is offered what works, and finds nothing of another organization, neither in any view
// nor with any call that the console can make.
func TestDrivingEachRole(t *testing.T) {
	b := browser.Start(t)
	for _, engine := range []string{testdb.SQLite, testdb.Postgres} {
		t.Run(engine, func(t *testing.T) {
			s := start(t, engine)
			home := s.fill(s.admin.org, "Homeland")
			foreign := s.fill(s.newOrganization("Foreignland"), "Foreignland")
			for _, role := range roles {
				t.Run("role "+role.name, func(t *testing.T) {
					s := &installation{t: t, url: s.url, token: s.token, admin: s.admin}
					name := "holder-" + strings.ToLower(strings.ReplaceAll(role.name, "_", "-"))
					var held []string
					if role.name != "" && !role.installation {
						held = append(held, role.name)
					}
					holder := s.person(home.org, strings.Trim(name, "-"), held...)
					if role.installation {
						s.rest("PUT", "/v1/members/"+holder.id, map[string]any{"roles": []string{role.name}})
					}
					w := s.signIn(t, b, holder)
					w.offered()
					before := s.lastEvent(foreign.org)
					for _, v := range foreign.views() {
						if !strings.Contains(v.route, ":") {
							continue
						}
						w.visit(v.path)
						if !role.installation && strings.Contains(w.Text("body"), "Foreignland") {
							t.Errorf("%s shows something of another organization:\n%s", v.route, w.Text("main"))
						}
						w.quietBut("403", "404")
					}
					if !role.installation {
						w.callEverything(foreign, home.org)
						if after := s.lastEvent(foreign.org); after != before {
							t.Errorf("something happened in the other organization: %v", after)
						}
					}
				})
			}
		})
	}
}

func (s *installation) lastEvent(org string) string {
	s.t.Helper()
	return fmt.Sprint(s.in(org, "GET", "/v1/events?pageSize=1", nil)["events"])
}

// offered visits everything in the navigation: nothing there is refused.
func (w *window) offered() {
	w.t.Helper()
	places := w.places()
	if len(places) == 0 {
		w.t.Error("the navigation is empty")
	}
	for _, place := range places {
		w.visit(place.Path)
		if w.Has("main .failure") {
			w.t.Errorf("%s was offered and is refused: %s", place.Path, w.Text("main .failure"))
		}
		w.quiet()
	}
}

// quietBut fails the test if the browser has complained about anything else than answers.
func (w *window) quietBut(statuses ...string) {
	w.t.Helper()
	for _, said := range w.Complaints() {
		if !slices.ContainsFunc(statuses, func(status string) bool { return strings.Contains(said, status) }) {
			w.t.Errorf("at %s the browser complains: %s", w.At(), said)
		}
	}
}

// encoded is a message as it goes over the wire.
type encoded []byte

type plain struct{}

func (plain) Name() string { return "proto" }
func (plain) Marshal(m any) ([]byte, error) {
	if message, ok := m.(proto.Message); ok { // the client's own, for errors
		return proto.Marshal(message)
	}
	return *m.(*encoded), nil
}
func (plain) Unmarshal(data []byte, m any) error {
	if message, ok := m.(proto.Message); ok {
		return proto.Unmarshal(data, message)
	}
	*m.(*encoded) = slices.Clone(data)
	return nil
}

// callEverything calls all operations with the window's token, about the objects of an organization, in it and in
// another one.
func (w *window) callEverything(o *objects, another string) {
	w.t.Helper()
	var token string
	w.Evaluate(`fetch('/console/token', {method: 'POST', headers: {'content-type': 'application/json'}, body: '{}'}).then((r) => r.json()).then((r) => r.token)`, &token)
	if token == "" {
		w.t.Fatal("the browser gets no token")
	}
	ids := map[protoreflect.Name]string{
		"org_id":         o.org,
		"granted_org_id": o.org,
		"user_id":        o.user,
		"app_id":         o.app,
		"project_id":     o.project,
		"idp_id":         o.provider,
		"group_id":       o.group,
		"grant_id":       o.grant,
		"webhook_id":     o.webhook,
		"object_id":      o.user,
		"actor":          o.user,
	}
	called := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("signet.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				method := methods.Get(j)
				if strings.Contains(string(method.Name()), "My") {
					continue // about the caller alone
				}
				request := dynamicpb.NewMessage(method.Input())
				named := fill(request, ids)
				for _, org := range []string{o.org, another} {
					if org == another && !named {
						continue // about the own organization
					}
					called++
					w.refused(method, request, org, token)
				}
			}
		}
		return true
	})
	if called < 150 {
		w.t.Errorf("only %d calls", called)
	}
	w.s.as(token, "", "GET", "/v1/users/me", nil) // the token was good until the end
}

// fill names the objects in a request, and says whether there are any.
func fill(m protoreflect.Message, ids map[protoreflect.Name]string) (named bool) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.IsList() || field.IsMap():
			if id := ids[protoreflect.Name(strings.TrimSuffix(string(field.Name()), "s"))]; id != "" &&
				field.IsList() && field.Kind() == protoreflect.StringKind {
				m.Mutable(field).List().Append(protoreflect.ValueOfString(id))
				named = true
			}
		case field.Kind() == protoreflect.StringKind:
			id := ids[field.Name()]
			if named = named || id != ""; id == "" && !strings.Contains(string(field.Name()), "token") {
				id = "abc"
			}
			m.Set(field, protoreflect.ValueOfString(id))
		case field.Kind() == protoreflect.MessageKind &&
			strings.HasPrefix(string(field.Message().FullName()), "signet."):
			named = fill(m.Mutable(field).Message(), ids) || named
		}
	}
	return named
}

// refused calls an operation. An answer that comes nevertheless must not tell anything.
func (w *window) refused(method protoreflect.MethodDescriptor, request proto.Message, org, token string) {
	w.t.Helper()
	body, err := proto.Marshal(request)
	must(w.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	client := connect.NewClient[encoded, encoded](http.DefaultClient,
		fmt.Sprintf("%s/%s/%s", w.s.url, method.Parent().FullName(), method.Name()), connect.WithGRPCWeb(),
		connect.WithCodec(plain{}))
	call := connect.NewRequest((*encoded)(&body))
	call.Header().Set("Authorization", "Bearer "+token)
	call.Header().Set("X-Service-Orgid", org)
	var told encoded
	if method.IsStreamingServer() {
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		stream, err := client.CallServerStream(short, call)
		must(w.t, err)
		defer stream.Close()
		for stream.Receive() {
			told = append(told, *stream.Msg()...)
		}
	} else if answer, err := client.CallUnary(ctx, call); err == nil {
		told = *answer.Msg
	} else if connect.CodeOf(err) == connect.CodeInternal {
		w.t.Errorf("%s is answered with %v", method.FullName(), err)
	}
	if strings.Contains(string(told), "Foreignland") {
		w.t.Errorf("%s tells something of another organization: %q", method.FullName(), told)
	}
}

// place is an entry of the navigation.
type place struct{ Text, Path string }

// places are the entries of the navigation of an organization and, if there is one, of the installation.
func (w *window) places() []place {
	w.t.Helper()
	const entries = `[...document.querySelectorAll('nav.side a')].map((a) =>
		({Text: a.innerText.trim(), Path: a.pathname.slice('/console'.length)}))`
	var found, more []place
	w.Evaluate(entries, &found)
	if !w.Has("nav.side .foot a") {
		return found
	}
	w.Click("nav.side .foot a")
	w.settle()
	w.Evaluate(entries, &more)
	found, more = found[:len(found)-1], more[:len(more)-1] // the last leads to the other one
	for _, p := range more {
		if !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	return found
}
