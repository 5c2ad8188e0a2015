// An update mask says which of the values beside it are set; the others stay as they are.

package api

import (
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/signet-idm/signet/internal/base/errs"
)

// maskedRequest is a request that changes the parts of an object that its update mask names.
type maskedRequest interface {
	proto.Message
	GetUpdateMask() *fieldmaskpb.FieldMask
}

// mask is what the update mask of a request can name.
type mask struct {
	NeverEmpty []string // paths that cannot be without a value
	ByNameOnly []string // paths that the name of their message does not mean

	leaves func() []maskLeaf
}

// Leaves are the fields that the mask can name.
func (m *mask) Leaves() []maskLeaf { return m.leaves() }

// maskLeaf is a field that holds no message, or a list, which is set as a whole.
type maskLeaf struct {
	Path  string // in the names of the definition, as masks have them
	json  string
	Steps []protoreflect.FieldDescriptor
}

// maskOf adds the fields of a request to a mask. The first of them says which object it is about, and is none of its
// parts. They are read when they are first needed.
func maskOf(r maskedRequest, m mask) *mask {
	m.leaves = sync.OnceValue(func() []maskLeaf { return leavesOf(r.ProtoReflect().Descriptor(), nil) })
	return &m
}

func leavesOf(md protoreflect.MessageDescriptor, above []protoreflect.FieldDescriptor) (leaves []maskLeaf) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if len(above) == 0 && (i == 0 || fd.Name() == "update_mask") {
			continue
		}
		steps := append(slices.Clone(above), fd)
		if fd.Message() != nil && !fd.IsList() {
			leaves = append(leaves, leavesOf(fd.Message(), steps)...)
			continue
		}
		l := maskLeaf{Steps: steps}
		for _, step := range steps {
			l.Path += "." + string(step.Name())
			l.json += "." + step.JSONName()
		}
		l.Path, l.json = l.Path[1:], l.json[1:]
		leaves = append(leaves, l)
	}
	return leaves
}

// sent tells whether a message has a value for the leaf.
func (l maskLeaf) sent(m protoreflect.Message) bool {
	for _, step := range l.Steps {
		if !m.Has(step) {
			return false
		}
		if step.Message() != nil && !step.IsList() {
			m = m.Get(step).Message()
		}
	}
	return true
}

// names tells whether a path names the leaf, itself or with all of its message.
func (m *mask) names(path string, l maskLeaf) bool {
	return l.Path == path || strings.HasPrefix(l.Path, path+".") && !slices.Contains(m.ByNameOnly, l.Path)
}

// Named tells of each leaf whether a request names it.
func (m *mask) Named(r maskedRequest) map[string]bool {
	fields := map[string]bool{}
	for _, l := range m.Leaves() {
		fields[l.Path] = slices.ContainsFunc(r.GetUpdateMask().GetPaths(),
			func(path string) bool { return m.names(path, l) })
	}
	return fields
}

// Check relates an update mask to the values beside it. What is sent but not named is refused: to drop it in silence
// would lose data.
func (m *mask) Check(r maskedRequest) []errs.Violation {
	paths := r.GetUpdateMask().GetPaths()
	if len(paths) == 0 {
		return []errs.Violation{{Field: "updateMask", Message: "must name at least one field"}}
	}
	var wrong []errs.Violation
	for _, path := range paths {
		if !slices.ContainsFunc(m.Leaves(), func(l maskLeaf) bool { return m.names(path, l) }) {
			wrong = append(wrong,
				errs.Violation{Field: "updateMask", Message: "names a field that cannot be set: use " + m.list()})
			break
		}
	}
	fields := m.Named(r)
	for _, l := range m.Leaves() {
		switch sent, named := l.sent(r.ProtoReflect()), fields[l.Path]; {
		case sent && !named:
			wrong = append(wrong,
				errs.Violation{Field: l.json, Message: "is not named in updateMask: name it, or leave it out"})
		case named && !sent && slices.Contains(m.NeverEmpty, l.Path):
			wrong = append(wrong, errs.Violation{Field: l.json, Message: "must not be empty"})
		}
	}
	return wrong
}

// list gives all names there are, as JSON has them.
func (m *mask) list() string {
	var names []string
	for _, l := range m.Leaves() {
		names = append(names, l.json)
	}
	return strings.Join(names, ", ")
}

// masked gives a value where the mask names its field.
func masked[T any](fields map[string]bool, path string, value T) *T {
	if fields[path] {
		return &value
	}
	return nil
}
