package rpc

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"

	"github.com/signet-idm/signet/internal/base/errs"
)

// Alias is another API under whose names operations answer, too: the same operations with the same rules, permissions
// and errors. Its messages must be equal to ours on the wire.
type Alias struct {
	Packages []string // of its services, such as zitadel.admin.v1
	Prefixes []string // of its REST paths, such as /admin/v1/
	Header   string   // its name for x-service-orgid, as net/http writes it
	Methods  []AliasMethod
	Unserved *errs.Error // what is answered to everything else of it
}

// AliasMethod is another name of an operation.
type AliasMethod struct {
	Procedure  string // such as zitadel.admin.v1.AdminService/SetUpOrg
	Verb, Path string // the path names fields of the request in braces
	Operation  string // ours, such as signet.v1.OrganizationService/SetupOrganization
}

// mountAlias gives operations the names that they have elsewhere.
func (h *Handler) mountAlias(a *Alias, ops map[string]*operation) (problems []error) {
	for _, m := range a.Methods {
		op := ops[m.Operation]
		if op == nil {
			problems = append(problems,
				fmt.Errorf("rpc: %s stands for %s, which there is not", m.Procedure, m.Operation))
			continue
		}
		b, err := newBinding(op,
			&annotations.HttpRule{Pattern: &annotations.HttpRule_Custom{Custom: &annotations.CustomHttpPattern{Kind: m.Verb, Path: m.Path}}, Body: "*"})
		if err != nil {
			problems = append(problems, fmt.Errorf("rpc: %s: %w", m.Procedure, err))
			continue
		}
		for _, err := range []error{
			h.root.add(http.MethodPost, "/"+m.Procedure, func(c *Call, _ []string) { a.translate(c); c.serveGRPC(op) }),
			h.root.add(m.Verb, m.Path, func(c *Call, values []string) { a.translate(c); b.serve(c, values) }),
		} {
			if err != nil {
				problems = append(problems, fmt.Errorf("rpc: %s: %w", m.Procedure, err))
			}
		}
	}
	return problems
}

// translate gives the header for the organization our name. Who sends both is refused as for any header that is
// repeated.
func (a *Alias) translate(c *Call) {
	header := c.Request.Header
	if values := header[a.Header]; len(values) > 0 {
		header[keyOrg] = append(slices.Clone(header[keyOrg]), values...)
	}
}

// has tells whether an unknown path is one of the other API.
func (a *Alias) has(path string) bool {
	within := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
	return slices.ContainsFunc(a.Packages, func(name string) bool { return within("/" + name + ".") }) ||
		slices.ContainsFunc(a.Prefixes, within)
}
