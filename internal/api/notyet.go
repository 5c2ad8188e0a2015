package api

import "errors"

// errNotYet stands where an operation is still to be built.
var errNotYet = errors.New("not implemented yet")
