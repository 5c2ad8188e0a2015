//go:build providers && pictures

package browser_test

// pictured keeps what the window shows for the guide.
func (p person) pictured(name string) {
	p.v.t.Helper()
	p.Screen("../../docs/guides/pictures/" + name + ".png")
}
