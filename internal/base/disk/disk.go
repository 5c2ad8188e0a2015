// Package disk is what operating systems do differently with files: locks, links, names that outlive a power cut, and
// who may read.
package disk

import "errors"

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("another process has locked this file")
