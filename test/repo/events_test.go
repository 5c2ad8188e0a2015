package repo

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/group"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/member"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/domain/role"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/invitation"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

// sample is an event as it was once written, and what it did. See testdata/events/README.md: payload and personal are
// never changed.
type sample struct {
	Type     event.Type      `json:"type"`
	Given    json.RawMessage `json:"given"`              // the state before; absent for a new object
	Payload  json.RawMessage `json:"payload"`            //
	Personal json.RawMessage `json:"personal,omitempty"` // opened
	Then     json.RawMessage `json:"then"`               // the state after
}

// samples are in files named after their type; those of an event that has got more fields since are numbered:
// a.b.v1-2.json.
func samples(t *testing.T) map[event.Type][]*sample {
	t.Helper()
	paths, err := filepath.Glob("testdata/events/*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[event.Type][]*sample{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var s sample
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&s); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".json"), "-"); name != string(s.Type) {
			t.Errorf("%s holds a sample of %s", path, s.Type)
		}
		all[s.Type] = append(all[s.Type], &s)
	}
	return all
}

func TestEveryEventEverWrittenCanBeReadAndFolded(t *testing.T) {
	all := samples(t)
	checkSamples(t, all, installation.Kind)
	checkSamples(t, all, org.Kind)
	checkSamples(t, all, user.Kind)
	checkSamples(t, all, idp.Kind)
	checkSamples(t, all, session.Kind)
	checkSamples(t, all, app.Kind)
	checkSamples(t, all, signing.Kind)
	checkSamples(t, all, oauth.Kind)
	checkSamples(t, all, webhook.Kind)
	checkSamples(t, all, failure.Kind)
	checkSamples(t, all, group.Kind)
	checkSamples(t, all, project.Kind)
	checkSamples(t, all, project.GrantKind)
	checkSamples(t, all, project.AccessKind)
	checkSamples(t, all, invitation.Kind)
	checkSamples(t, all, member.OfferKind)
	checkSamples(t, all, role.Kind)
	for typ := range all {
		t.Errorf("%s is in no schema any more: logs that hold it cannot be read. Bring its fact back", typ)
	}
}

// checkSamples folds the samples of one kind and takes them off the list.
func checkSamples[S any](t *testing.T, all map[event.Type][]*sample, kind *event.Objects[S]) {
	for _, typ := range kind.Types() {
		if all[typ] == nil {
			t.Errorf("there is no sample of %s: add testdata/events/%s.json", typ, typ)
			continue
		}
		for _, s := range all[typ] {
			checkSample(t, s, kind)
		}
		delete(all, typ)
	}
}

func checkSample[S any](t *testing.T, s *sample, kind *event.Objects[S]) {
	t.Run(string(s.Type), func(t *testing.T) {
		fold := func(personal []byte) []byte {
			fact, err := kind.Decode(s.Type, s.Payload, personal)
			if err != nil {
				t.Fatal(err)
			}
			if fact.EventType() != s.Type {
				t.Errorf("it decodes as %s", fact.EventType())
			}
			var state S
			if len(s.Given) > 0 {
				if err := json.Unmarshal(s.Given, &state); err != nil {
					t.Fatal(err)
				}
			}
			fact.Apply(&state)
			doc, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			return doc
		}
		if got := fold(s.Personal); !sameJSON(t, got, s.Then) {
			t.Errorf("it folds to\n%s\nwant\n%s", got, s.Then)
		}
		fold(nil) // the person may have been erased: what is left must still fold
	})
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// A sample must use what its type has: one that leaves every field out would go on decoding whatever is renamed.
func TestASampleFillsEveryField(t *testing.T) {
	all := samples(t)
	for _, f := range files(t) {
		if f.test || !under(f.dir, objects) {
			continue
		}
		tags, types := factTags(f)
		for name, typ := range types {
			if all[event.Type(typ)] == nil {
				continue
			}
			filled := map[string]json.RawMessage{}
			for _, s := range all[event.Type(typ)] {
				if err := json.Unmarshal(s.Payload, &filled); err != nil { // adds to what is there
					t.Fatal(err)
				}
			}
			for _, tag := range tags[name] {
				if _, there := filled[tag]; !there {
					t.Errorf("no sample of %s has %q", typ, tag)
				}
			}
		}
	}
}

// factTags reads the JSON names of the facts of a file, and their event types.
func factTags(f *file) (tags map[string][]string, types map[string]string) {
	tags, types = map[string][]string{}, map[string]string{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if field.Tag == nil {
						continue
					}
					tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
					if name, _, _ := strings.Cut(tag, ","); name != "-" && name != "" {
						tags[n.Name.Name] = append(tags[n.Name.Name], name)
					}
				}
			}
		case *ast.FuncDecl:
			if n.Name.Name == "EventType" && n.Recv != nil {
				if receiver, ok := n.Recv.List[0].Type.(*ast.Ident); ok {
					ast.Inspect(n.Body, func(in ast.Node) bool {
						if literal, ok := in.(*ast.BasicLit); ok {
							types[receiver.Name] = strings.Trim(literal.Value, `"`)
						}
						return true
					})
				}
			}
		}
		return true
	})
	return tags, types
}

func TestEveryKindOfObjectIsKnownToTheStoreAndToThisTest(t *testing.T) {
	defined := 0
	for _, f := range files(t) {
		if f.test || under(f.dir, testOnly) {
			continue
		}
		name := f.imported(module + "internal/eventlog/event")
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Define" && isIdent(s.X, name) {
					defined++
				}
			}
			return true
		})
	}
	if defined != len(model.Kinds) {
		t.Errorf("%d kinds are defined, but model.Kinds lists %d", defined, len(model.Kinds))
	}
	tested := []event.Definition{installation.Kind, org.Kind, user.Kind, idp.Kind, session.Kind, app.Kind, signing.Kind,
		oauth.Kind, webhook.Kind, failure.Kind,
		group.Kind, project.Kind, project.GrantKind, project.AccessKind, invitation.Kind, member.OfferKind, role.Kind}
	for _, k := range model.Kinds {
		found := false
		for _, have := range tested {
			found = found || have.Name() == k.Name()
		}
		if !found {
			t.Errorf("the samples of %q are not checked: add its kind to TestEveryEventEverWrittenCanBeReadAndFolded", k.Name())
		}
	}
}

func TestEventsAreNamedInThePastTenseWithAVersion(t *testing.T) {
	for _, k := range model.Kinds {
		for _, typ := range k.Types() {
			parts := strings.Split(string(typ), ".")
			if len(parts) != 3 || parts[0] != string(k.Name()) || !strings.HasPrefix(parts[2], "v") ||
				strings.ToLower(string(typ)) != string(typ) {
				t.Errorf("%s is not written like object.fact_happened.v1", typ)
			}
		}
	}
}

// eventsFile names every type of event for those who read them.
const eventsFile = "docs/api/events.md"

func TestEveryTypeOfEventIsInTheDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, eventsFile))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## All types")
	known := map[string]bool{}
	for _, k := range model.Kinds {
		row := "| `" + string(k.Name()) + "` | "
		for _, typ := range k.Types() {
			known[string(typ)] = true
			found := false
			for line := range strings.Lines(table) {
				found = found || strings.HasPrefix(line, row) && strings.Contains(line, "`"+string(typ)+"`")
			}
			if !found {
				t.Errorf("%s is not in the row of %s in %s", typ, k.Name(), eventsFile)
			}
		}
	}
	for _, named := range regexp.MustCompile("`([a-z_]+\\.[a-z_]+\\.v[0-9]+)`").FindAllStringSubmatch(string(text), -1) {
		if !known[named[1]] {
			t.Errorf("%s names %s, which is none", eventsFile, named[1])
		}
	}
}
