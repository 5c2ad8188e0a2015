package api_test

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// leaf is a field of a request, with its path in JSON names.
type leaf struct {
	path string
	fd   protoreflect.FieldDescriptor
}

// fieldsOf lists all fields of a message, those of messages in it included.
func fieldsOf(md protoreflect.MessageDescriptor, prefix string) (all []leaf) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		path := prefix + fd.JSONName()
		all = append(all, leaf{path, fd})
		if fd.Message() != nil && !fd.IsList() && !fd.IsMap() &&
			fd.Message().ParentFile().Package() == md.ParentFile().Package() {
			all = append(all, fieldsOf(fd.Message(), path+".")...)
		}
	}
	return all
}

// textFields lists the single text fields of a request.
func textFields(op *operation) (paths []string) {
	for _, f := range fieldsOf(op.md.Input(), "") {
		if f.fd.Kind() == protoreflect.StringKind && !f.fd.IsList() {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// isParameter tells whether the path of an operation has the field.
func isParameter(op *operation, path string) bool {
	fd := op.md.Input().Fields().ByJSONName(path)
	return fd != nil && strings.Contains(op.path, "{"+string(fd.Name())+"}")
}
