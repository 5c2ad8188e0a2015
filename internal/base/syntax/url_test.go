package syntax

import "testing"

func TestShownURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://hooks.example":                      "https://hooks.example",
		"https://hooks.example/":                     "https://hooks.example/",
		"https://hooks.example:8443/T000/SECRET":     "https://hooks.example:8443/…",
		"https://hooks.example?token=SECRET":         "https://hooks.example/…",
		"https://hooks.example#SECRET":               "https://hooks.example/…",
		"https://ada:SECRET@hooks.example/":          "https://hooks.example/…",
		"https://ada:SE/CRET@hooks.example/":         "https://ada:SE/…", // no URL: nobody has stored one like it
		`https://hooks.example\SECRET`:               "https://hooks.example/…",
		"http://[2001:db8::1]:80/SECRET://elsewhere": "http://[2001:db8::1]:80/…",
		"SECRET": "",
		"":       "",
	} {
		if got := ShownURL(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
