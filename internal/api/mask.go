package api

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/signet-idm/signet/internal/errs"
)

// masked is a request that changes the parts of an object that its update mask names.
type masked interface {
	proto.Message
	GetUpdateMask() *fieldmaskpb.FieldMask
}

// mask is what the update mask of a request can name.
type mask struct {
	leaves     []leaf
	neverEmpty []string // paths that cannot be without a value
	byNameOnly []string // paths that the name of their message does not mean
}

// leaf is a field that holds no message.
type leaf struct {
	path  string // in the names of the definition, as masks have them
	json  string
	steps []protoreflect.FieldDescriptor
}

// maskOf adds the fields of a request to a mask. The first of them says which object it is about, and is none of its parts.
func maskOf(r masked, m mask) *mask {
	m.leaves = leavesOf(r.ProtoReflect().Descriptor(), nil)
	return &m
}

func leavesOf(md protoreflect.MessageDescriptor, above []protoreflect.FieldDescriptor) (leaves []leaf) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if len(above) == 0 && (i == 0 || fd.Name() == "update_mask") {
			continue
		}
		steps := append(slices.Clone(above), fd)
		if fd.Message() != nil {
			leaves = append(leaves, leavesOf(fd.Message(), steps)...)
			continue
		}
		l := leaf{steps: steps}
		for _, step := range steps {
			l.path += "." + string(step.Name())
			l.json += "." + step.JSONName()
		}
		l.path, l.json = l.path[1:], l.json[1:]
		leaves = append(leaves, l)
	}
	return leaves
}

// sent tells whether a message has a value for the leaf.
func (l leaf) sent(m protoreflect.Message) bool {
	for _, step := range l.steps {
		if !m.Has(step) {
			return false
		}
		if step.Message() != nil {
			m = m.Get(step).Message()
		}
	}
	return true
}

// names tells whether a path names the leaf, itself or with all of its message.
func (m *mask) names(path string, l leaf) bool {
	return l.path == path || strings.HasPrefix(l.path, path+".") && !slices.Contains(m.byNameOnly, l.path)
}

// named tells of each leaf whether a request names it.
func (m *mask) named(r masked) map[string]bool {
	fields := map[string]bool{}
	for _, l := range m.leaves {
		fields[l.path] = slices.ContainsFunc(r.GetUpdateMask().GetPaths(), func(path string) bool { return m.names(path, l) })
	}
	return fields
}

// check relates an update mask to the values beside it. What is sent but not named is refused: to drop it in silence would
// lose data.
func (m *mask) check(r masked) []errs.Violation {
	paths := r.GetUpdateMask().GetPaths()
	if len(paths) == 0 {
		return []errs.Violation{{Field: "updateMask", Message: "must name at least one field"}}
	}
	var wrong []errs.Violation
	for _, path := range paths {
		if !slices.ContainsFunc(m.leaves, func(l leaf) bool { return m.names(path, l) }) {
			wrong = append(wrong, errs.Violation{Field: "updateMask", Message: "names a field that cannot be set: use " + m.list()})
			break
		}
	}
	fields := m.named(r)
	for _, l := range m.leaves {
		switch sent, named := l.sent(r.ProtoReflect()), fields[l.path]; {
		case sent && !named:
			wrong = append(wrong, errs.Violation{Field: l.json, Message: "is not named in updateMask: name it, or leave it out"})
		case named && !sent && slices.Contains(m.neverEmpty, l.path):
			wrong = append(wrong, errs.Violation{Field: l.json, Message: "must not be empty"})
		}
	}
	return wrong
}

// list gives all names there are, as JSON has them.
func (m *mask) list() string {
	var names []string
	for _, l := range m.leaves {
		names = append(names, l.json)
	}
	return strings.Join(names, ", ")
}

// named gives a value where the mask names its field.
func named[T any](fields map[string]bool, path string, value T) *T {
	if fields[path] {
		return &value
	}
	return nil
}
