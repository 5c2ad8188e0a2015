package rpc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
)

// guarded is a field of a request that needs a scope when it is set, or a message with such fields in it.
type guarded struct {
	fd     protoreflect.FieldDescriptor
	path   string           // from the request on, as update masks have it
	scope  access.APIScopes // of the field itself; none: see inside
	inside []guarded
}

// readScopes works out from the definition what an application needs. It refuses what could not be enforced.
func (op *operation) readScopes() error {
	rule := op.rule
	for _, name := range rule.GetApiScopes() {
		if !access.IsAPIScope(name) {
			return fmt.Errorf("its rule names the unknown scope %q", name)
		}
	}
	op.scopes = access.ScopesNamed(rule.GetApiScopes()...)
	proof := rule.GetAuthenticated() && rule.GetProof() != signetv1.Proof_PROOF_UNSPECIFIED
	if op.scopes != 0 && (rule.GetPublic() || rule.GetRestrictedSession() || rule.GetUnprovenSession() || proof) {
		return errors.New("its rule has scopes, but it is for sessions of people, or for everybody: no application calls it by a scope")
	}
	var err error
	op.guarded, op.moreScopes, err = guardedIn(op.input.Descriptor(), "", nil)
	return err
}

// guardedIn finds the fields of a message that need scopes, and what they need together.
func guardedIn(md protoreflect.MessageDescriptor, above string,
	around []protoreflect.MessageDescriptor) (found []guarded, all access.APIScopes, err error) {
	if slices.Contains(around, md) {
		return nil, 0, nil // what is in it was found already; no request of ours has such a message
	}
	around = append(slices.Clone(around), md)
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		g := guarded{fd: fd, path: above + string(fd.Name())}
		if name, _ := proto.GetExtension(fd.Options(), signetv1.E_NeedsScope).(string); name != "" {
			if g.scope = access.ScopesNamed(name); g.scope == 0 {
				return nil, 0, fmt.Errorf("the field %s needs the unknown scope %q", g.path, name)
			}
		}
		within := g.scope
		if fd.Message() != nil && !fd.IsMap() {
			var inner access.APIScopes
			if g.inside, inner, err = guardedIn(fd.Message(), g.path+".", around); err != nil {
				return nil, 0, err
			}
			within |= inner
		}
		if within != 0 {
			found, all = append(found, g), all|within
		}
	}
	return found, all, nil
}

// within refuses an application that was not given the scopes of the operation and of what the request sets.
func (op *operation) within(caller *access.Caller, req proto.Message) error {
	if caller.Scopes == nil {
		return nil
	}
	if op.scopes == 0 {
		return access.ErrNotForApplications
	}
	given := access.ScopesGiven(caller.Scopes)
	needs := op.scopes
	if op.moreScopes.Without(given) != 0 {
		needs |= needsOfFields(req.ProtoReflect(), op.guarded)
		for _, path := range maskIn(req) {
			needs |= needsOfPath(path, op.guarded)
		}
	}
	if missing := needs.Without(given); missing != 0 {
		return access.ErrScopes(missing)
	}
	return nil
}

// needsOfFields gives the scopes of the fields that are set in a message.
func needsOfFields(m protoreflect.Message, fields []guarded) (needs access.APIScopes) {
	for _, g := range fields {
		if !m.Has(g.fd) {
			continue
		}
		needs |= g.scope
		switch {
		case len(g.inside) == 0:
		case g.fd.IsList():
			for list, i := m.Get(g.fd).List(), 0; i < list.Len(); i++ {
				needs |= needsOfFields(list.Get(i).Message(), g.inside)
			}
		default:
			needs |= needsOfFields(m.Get(g.fd).Message(), g.inside)
		}
	}
	return needs
}

// needsOfPath gives the scopes of the fields that an update mask names by a path: one that is named without a value is
// changed, too.
func needsOfPath(path string, fields []guarded) (needs access.APIScopes) {
	for _, g := range fields {
		if overlap(path, g.path) {
			needs |= g.scope | needsOfPath(path, g.inside)
		}
	}
	return needs
}

// overlap tells whether one of two paths is, or is inside, the other.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// maskIn gives the paths of a request's update mask.
func maskIn(req proto.Message) []string {
	masked, ok := req.(interface {
		GetUpdateMask() *fieldmaskpb.FieldMask
	})
	if !ok {
		return nil
	}
	return masked.GetUpdateMask().GetPaths()
}

// needsOf tells for each permission what an application needs to do everything that can be done with it. A permission
// that is also for operations that no application may call is left out: none holds it.
func needsOf(ops map[string]*operation) map[access.Permission]access.APIScopes {
	needs, never := maps.Clone(access.BesideOperations), map[access.Permission]bool{}
	for _, op := range ops {
		for _, p := range op.permissions {
			needs[p] |= op.scopes | op.moreScopes
			never[p] = never[p] || op.scopes == 0
		}
	}
	for p := range never {
		if never[p] {
			delete(needs, p)
		}
	}
	return needs
}
