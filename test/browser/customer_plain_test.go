//go:build providers && !pictures

package browser_test

// pictured does nothing: pictures are taken with the tag of that name.
func (person) pictured(string) {}
