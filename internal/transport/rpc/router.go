package rpc

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// node is a node of the tree of paths, which has one level per segment.
//
// A path is taken literally: it is split at its slashes before anything is unescaped, nothing is cleaned and nobody is
// redirected. An empty segment matches nothing; fixed segments match only as they are spelled, before parameters; a
// parameter takes one whole segment, unescaped once, so that an escaped slash stays part of its value.
type node struct {
	fixed map[string]*node
	param *node
	ends  map[string]serveFunc // by HTTP method; nil where no path ends
}

// serveFunc answers a request; values are the parameters in the order of the path.
type serveFunc func(c *Call, values []string)

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

// match finds what serves a method at an escaped path, and the values of the path's parameters. Where a fixed segment
// leads to a node without the method, a parameter may still lead to one that has it.
func (n *node) match(method, path string) (serve serveFunc, values []string) {
	n.walk(path, func(end *node, v []string) bool {
		serve, values = end.ends[method], v
		if serve == nil && method == http.MethodHead {
			serve = end.ends[http.MethodGet] // net/http leaves the body out
		}
		return serve == nil
	})
	return serve, values
}

// allowed lists the methods that an escaped path takes, for headers. It is empty where there is no such path.
func (n *node) allowed(path string) string {
	var methods []string
	n.walk(path, func(end *node, _ []string) bool {
		methods = append(methods, http.MethodOptions)
		for m := range end.ends {
			if methods = append(methods, m); m == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
		}
		return true
	})
	slices.Sort(methods)
	return strings.Join(slices.Compact(methods), ", ")
}

// walk goes through the nodes that an escaped path leads to, the most literal one first, as long as each says so.
func (n *node) walk(path string, each func(end *node, values []string) (on bool)) {
	if rest, ok := strings.CutPrefix(path, "/"); ok {
		n.step(rest, true, nil, each)
	}
}

func (n *node) step(rest string, more bool, values []string, each func(*node, []string) bool) (on bool) {
	if !more {
		return n.ends == nil || each(n, values)
	}
	segment, rest, more := strings.Cut(rest, "/")
	if child := n.fixed[segment]; child != nil && !child.step(rest, more, values, each) {
		return false
	}
	if n.param == nil || segment == "" {
		return true
	}
	value, err := url.PathUnescape(segment)
	if err != nil {
		return true
	}
	return n.param.step(rest, more, append(values, value), each)
}
