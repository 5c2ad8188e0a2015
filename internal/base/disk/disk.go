// Package disk hides the differences between operating systems in the handling of files: locks, links, renames that
// survive a power cut, and who may read a file.
package disk

import "errors"

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("another process has locked this file")
