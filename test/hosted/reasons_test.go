package hosted

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/internal/signin/session"
)

// why is what the log says about the failed sign-ins of a person.
func (w *world) why(userID string) (causes []string) {
	w.t.Helper()
	for after := int64(0); ; {
		events, err := w.server.Store().Events(w.t.Context(), after, 1000)
		must(w.t, err)
		if len(events) == 0 {
			return causes
		}
		for _, e := range events {
			if after = e.Position; e.ObjectID != session.IDFor(userID) || e.Type != "sign_in.failed.v1" {
				continue
			}
			var f session.Failed
			must(w.t, json.Unmarshal(e.Payload, &f))
			if e.Actor != event.System {
				w.t.Errorf("caused by %s", e.Actor)
			}
			for _, by := range f.By {
				causes = append(causes, fmt.Sprintf("%s %s %s %d", by.Method, by.Application, by.Reason, by.Count))
			}
		}
	}
}

// Whoever helps reads why somebody did not get to an application.
func TestTheLogSaysWhySomebodyDoesNotGetToAnApplication(t *testing.T) {
	w := open(t, server.Config{})
	shop := w.application("Shop", func(s *app.Settings) { s.ConsentRequired = true })
	prj := project.Kind.NewID()
	w.do(event.Command{Write: []event.Ref{project.Kind.Ref(prj)}, Decide: func(tx *event.Tx) error {
		_, err := project.Kind.Create(tx, prj, w.org, project.Added{Name: "Crew", NameKey: "crew"})
		return err
	}})
	crew := w.application("Crew")
	w.do(event.Command{Write: []event.Ref{app.Kind.Ref(crew)}, Decide: func(tx *event.Tx) error {
		a, err := app.Kind.Get(tx, crew)
		if err != nil {
			return err
		}
		return a.Append(app.RoleSettingsSet{RoleSettings: app.RoleSettings{Project: prj, Required: true}})
	}})
	elsewhere, domain := w.organization()
	for _, tt := range []struct {
		name, org, app string
		walk           func(who person)
		want           string
	}{
		{"a wrong password", w.org, shop, func(who person) {
			w.browser().authorize(shop).signIn(who.name, "wrong").shows(422, "is wrong")
		}, "pwd " + shop + " wrong_password 1"},
		{"no consent", w.org, shop, func(who person) {
			if got := w.signedIn(who).authorize(shop).post("do", "deny").arrival(callback); got.Get("error") != "access_denied" {
				t.Errorf("got %v", got)
			}
		}, "pwd " + shop + " consent_refused 1"},
		{"no consent for a device", w.org, shop, func(who person) {
			g := w.gadget(shop, "openid")
			p := w.signedIn(who).get("/device").post("userCode", g.user)
			p.post("id", p.hidden("id"), "userCode", g.user, "do", "deny").shows(200)
		}, "pwd " + shop + " consent_refused 1"},
		{"no role", w.org, crew, func(who person) {
			b := w.signedIn(who)
			b.authorize(crew, "prompt", "none") // which an application may repeat all day
			b.authorize(crew).shows(200, "role")
		}, "pwd " + crew + " role_missing 1"},
		{"no role at a device", w.org, crew, func(who person) {
			g := w.gadget(crew, "openid")
			p := w.signedIn(who).get("/device").post("userCode", g.user)
			p.post("id", p.hidden("id"), "userCode", g.user, "do", "allow").shows(422)
		}, "pwd " + crew + " role_missing 1"},
		{"another organization", elsewhere, crew, func(who person) {
			b := w.browser()
			b.get("/login").signIn(who.name+"@"+domain, password)
			b.authorize(crew)
		}, "pwd " + crew + " application_refused 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			who := w.person(tt.org, true)
			tt.walk(who)
			if got := fmt.Sprint(w.why(who.id)); got != "["+tt.want+"]" {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
