package app_test

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

func TestWhereAnApplicationHasSomebodyBeginToSignIn(t *testing.T) {
	const shop, tail = "https://shop.example/start", "iss=https%3A%2F%2Fid.test&login_hint=jo%40acme.example"
	for name, tt := range map[string]struct{ start, target, want string }{
		"nowhere":        {"", "", ""},
		"at its address": {shop, "", shop + "?" + tail},
		"with a query":   {shop + "?a=b", "", shop + "?a=b&" + tail},
		"at a page": {shop, "https://shop.example/x?y=z",
			shop + "?" + tail + "&target_link_uri=https%3A%2F%2Fshop.example%2Fx%3Fy%3Dz"},
		"at a page of another origin":     {shop, "https://evil.example/", shop + "?" + tail},
		"at a page, and nowhere":          {"", "https://shop.example/", ""},
		"at an address of before":         {"http://shop.example/start", "", ""},
		"at an address of another scheme": {"shop.example:/start", "", ""},
	} {
		a := app.App{Settings: app.Settings{InitiateLoginURI: tt.start}}
		if got := a.Start("https://id.test", "jo@acme.example", tt.target); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestWhichPagesAreOfTheOriginOfTheStartAddress(t *testing.T) {
	for target, good := range map[string]bool{
		"https://shop.example":                                    true,
		"https://SHOP.example/deep?x=y":                           true,
		"https://shop.example:443/":                               true,
		"https://shop.example:444/":                               false,
		"http://shop.example/":                                    false,
		"http://localhost/":                                       false,
		"https://shop.example.evil.example/":                      false,
		"https://evil.example/shop.example":                       false,
		"https://shop.example@evil.example/":                      false,
		"https://user@shop.example/":                              false,
		`https://shop.example\@evil.example/`:                     false,
		"//shop.example/":                                         false,
		"/deep":                                                   false,
		"javascript:alert(1)":                                     false,
		"shop.example:/deep":                                      false,
		"https://shop.example/#part":                              false,
		"https://shop.example/\n":                                 false,
		"https://shop.example/" + strings.Repeat("x", app.MaxURI): false,
	} {
		a := app.App{Settings: app.Settings{InitiateLoginURI: "https://shop.example/start"}}
		if problem := a.TargetProblem(target); (problem == nil) != good {
			t.Errorf("%q: %v", target, problem)
		}
		if a.InitiateLoginURI = ""; a.TargetProblem(target) == nil {
			t.Errorf("%q is a page of an application without a start address", target)
		}
	}
}

func TestWhomAnApplicationServes(t *testing.T) {
	for name, tt := range map[string]struct {
		typ     app.Type
		all     bool
		end     event.Fact[app.App] // nil: it is active
		org     string
		granted bool
		want    bool
	}{
		"of the organization":       {app.Web, false, nil, "org_a", false, true},
		"of another one":            {app.Web, false, nil, "org_b", false, false},
		"granted":                   {app.Web, false, nil, "org_b", true, true},
		"granted, and switched off": {app.Web, false, app.Deactivated{}, "org_b", true, false},
		"switched off":              {app.Web, false, app.Deactivated{}, "org_a", false, false},
		"gone":                      {app.Web, false, app.WasRemoved{}, "org_a", false, false},
		"an API":                    {app.API, false, nil, "org_a", false, false},
		"an API that was granted":   {app.API, false, nil, "org_b", true, false},
		"of all of them":            {app.SPA, true, nil, "org_b", false, true},
		"of all, and switched off":  {app.SPA, true, app.Deactivated{}, "org_b", false, false},
	} {
		o := &event.Object[app.App]{Org: "org_a"}
		app.Added{Type: tt.typ, Settings: app.Settings{AllOrganizations: tt.all}}.Apply(&o.Data)
		if tt.end != nil {
			tt.end.Apply(&o.Data)
		}
		if got := app.Serves(o, tt.org, tt.granted); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if app.Serves(nil, "org_a", true) {
		t.Error("one that there is not serves somebody")
	}
}
