// Package traces tests the spans of a running server, as a collector receives them, and makes pictures of them for the
// docs (make trace-pictures).
package traces
