package repo

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// operationsFile lists all operations. It follows from the definition; SIGNET_UPDATE_DOCS=1 writes it (make generate).
const operationsFile = "docs/api/operations.md"

func TestTheListOfOperationsIsWhatTheDefinitionSays(t *testing.T) {
	want := operationsPage(t)
	path := filepath.Join(root, operationsFile)
	if os.Getenv("SIGNET_UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != want {
		t.Errorf("%s is not up to date: run make generate (%v)", operationsFile, err)
	}
}

func operationsPage(t *testing.T) string {
	services := map[string][]string{}
	methods(t, func(t *testing.T, m protoreflect.MethodDescriptor, rule *signetv1.Rule) {
		binding, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
		notes := []string{}
		if rule.GetDeprecatedSince() != 0 {
			notes = append(notes, "deprecated")
		}
		if rule.GetUpdates() {
			notes = append(notes, "`if-match`")
		}
		if rule.GetCreates() {
			notes = append(notes, "`idempotency-key`")
		}
		switch rule.GetProof() {
		case signetv1.Proof_PROOF_SESSION:
			notes = append(notes, "[session](README.md#how-people-change-the-way-they-sign-in)")
		case signetv1.Proof_PROOF_RECENT:
			notes = append(notes, "[recent proof](README.md#how-people-change-the-way-they-sign-in)")
		case signetv1.Proof_PROOF_RECENT_PERSON:
			notes = append(notes, "[recent proof](README.md#how-people-change-the-way-they-sign-in), people only")
		}
		name := string(m.Parent().Name())
		services[name] = append(services[name],
			fmt.Sprintf("| `%s` | `%s` | %s | %s | %s |", m.Name(),
				parameters.ReplaceAllStringFunc(pathOf(binding), jsonName), whoMay(rule), applicationsNeed(m, rule),
				strings.Join(notes, ", ")))
	})
	var b strings.Builder
	b.WriteString("# All operations\n\n`make generate` makes this list from [proto/signet/v1](../../proto/signet/v1), which describes each operation. `/openapi.json` describes them too. " +
		"[README.md](README.md) explains\nwhat they have in common.\n\n" +
		"Applications, and access tokens of service users, need all named scopes, and those of the fields that a request sets " +
		"([more](openid-connect.md#signets-own-api)).\n")
	names := make([]string, 0, len(services))
	for name := range services {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\n## %s\n\n| RPC | REST | who may call it | scopes for applications | supported headers; proof needed for oneself |\n|---|---|---|---|---|\n%s\n", name, strings.Join(services[name], "\n"))
	}
	return b.String()
}

var parameters = regexp.MustCompile(`\{[a-z_]+\}`)

// jsonName is a parameter of a path as it is called in JSON and in all other pages: {userId} for {user_id}.
func jsonName(parameter string) string {
	return regexp.MustCompile(`_[a-z]`).ReplaceAllStringFunc(parameter,
		func(s string) string { return strings.ToUpper(s[1:]) })
}

func pathOf(rule *annotations.HttpRule) string {
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		return "GET " + p.Get
	case *annotations.HttpRule_Put:
		return "PUT " + p.Put
	case *annotations.HttpRule_Post:
		return "POST " + p.Post
	case *annotations.HttpRule_Patch:
		return "PATCH " + p.Patch
	case *annotations.HttpRule_Delete:
		return "DELETE " + p.Delete
	}
	return ""
}

// applicationsNeed tells which scopes an operation needs, and which fields of its request need more.
func applicationsNeed(m protoreflect.MethodDescriptor, rule *signetv1.Rule) string {
	switch {
	case rule.GetPublic():
		return "nothing"
	case len(rule.GetApiScopes()) == 0:
		return "not for applications"
	}
	var fields []string
	more := map[string][]string{}
	everyField(m.Input(), "", func(path string, fd protoreflect.FieldDescriptor) bool {
		if name := neededBy(fd); name != "" {
			if more[name] == nil {
				fields = append(fields, name)
			}
			more[name] = append(more[name], "`"+path+"`")
		}
		return true
	})
	needs := []string{"`" + strings.Join(rule.GetApiScopes(), "`, `") + "`"}
	for _, name := range fields {
		needs = append(needs, "`"+name+"` for "+strings.Join(more[name], ", "))
	}
	return strings.Join(needs, "; ")
}

func whoMay(rule *signetv1.Rule) string {
	switch {
	case rule.GetPublic():
		return "everybody"
	case rule.GetAuthenticated():
		return "anybody who is signed in, for themselves"
	}
	where := map[signetv1.Scope]string{
		signetv1.Scope_SCOPE_SELF:    "in the installation",
		signetv1.Scope_SCOPE_CONTEXT: "in the context organization",
		signetv1.Scope_SCOPE_PATH:    "in the organization of the path",
		signetv1.Scope_SCOPE_TARGET:  "in the organization of the target",
	}[rule.GetScope()]
	who := "`" + rule.GetPermission() + "` " + where
	if narrower := rule.GetNarrower(); len(narrower) > 0 {
		who += "; for less also `" + strings.Join(narrower, "`, `") + "`"
	}
	return who
}
