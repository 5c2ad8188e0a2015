package rpc

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// node is a place in the tree of paths, which has one level per segment.
//
// A path is taken literally: it is split at its slashes before anything is unescaped, nothing is cleaned and nobody is
// redirected. An empty segment matches nothing; fixed segments match only as they are spelled, before parameters; a
// parameter takes one whole segment, unescaped once, so that an escaped slash stays part of its value.
type node struct {
	fixed map[string]*node
	param *node
	ends  map[string]serveFunc // by HTTP method; nil where no path ends
	allow string               // the methods, for headers
}

// serveFunc answers a request; values are the parameters in the order of the path.
type serveFunc func(x *exchange, values []string)

// add puts a path into the tree. A segment in braces is a parameter.
func (n *node) add(method, template string, serve serveFunc) error {
	rest, ok := strings.CutPrefix(template, "/")
	if !ok {
		return fmt.Errorf("the path %s does not start with a slash", template)
	}
	for segment := range strings.SplitSeq(rest, "/") {
		switch {
		case segment == "" || strings.ContainsAny(segment, "*:=%"):
			return fmt.Errorf("the path %s has a segment %q, which is not supported", template, segment)
		case segment[0] == '{':
			if n.param == nil {
				n.param = &node{}
			}
			n = n.param
		default:
			if n.fixed == nil {
				n.fixed = map[string]*node{}
			}
			if n.fixed[segment] == nil {
				n.fixed[segment] = &node{}
			}
			n = n.fixed[segment]
		}
	}
	if n.ends == nil {
		n.ends = map[string]serveFunc{}
	}
	if n.ends[method] != nil {
		return fmt.Errorf("%s %s is already taken", method, template)
	}
	n.ends[method] = serve
	return nil
}

// seal works out what every place allows.
func (n *node) seal() {
	if n == nil {
		return
	}
	if n.ends != nil {
		methods := []string{http.MethodOptions}
		for m := range n.ends {
			methods = append(methods, m)
		}
		if n.ends[http.MethodGet] != nil {
			methods = append(methods, http.MethodHead)
		}
		slices.Sort(methods)
		n.allow = strings.Join(methods, ", ")
	}
	for _, child := range n.fixed {
		child.seal()
	}
	n.param.seal()
}

// match finds where an escaped path ends, and the values of its parameters.
func (n *node) match(path string) (*node, []string) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return nil, nil
	}
	return n.find(rest, true, nil)
}

func (n *node) find(rest string, more bool, values []string) (*node, []string) {
	if !more {
		if n.ends == nil {
			return nil, nil
		}
		return n, values
	}
	segment, rest, more := strings.Cut(rest, "/")
	if child := n.fixed[segment]; child != nil {
		if end, v := child.find(rest, more, values); end != nil {
			return end, v
		}
	}
	if n.param == nil || segment == "" {
		return nil, nil
	}
	value, err := url.PathUnescape(segment)
	if err != nil {
		return nil, nil
	}
	return n.param.find(rest, more, append(values, value))
}
