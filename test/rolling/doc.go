// Package rolling restarts three nodes one after the other, or upgrades them from the version before, behind nginx and
// HAProxy, while 64 callers use every protocol, the console and event streams, and checks that nothing fails but what
// the documented rule lets a client repeat (docs/api/errors.md), and that nothing is lost or doubled. make rolling runs
// it; it takes too long for make test.
package rolling
