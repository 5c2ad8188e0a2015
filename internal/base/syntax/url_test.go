package syntax

import (
	"strings"
	"testing"
	"unicode/utf8"
)

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

func TestLoggedURL(t *testing.T) {
	long := "https://app.example/" + strings.Repeat("é", 300)
	for address, want := range map[string]string{
		"https://app.example":                         "https://app.example",
		"https://app.example/back":                    "https://app.example/back",
		"https://app.example/a%2fb":                   "https://app.example/a%2fb",
		"https://app.example/back?":                   "https://app.example/back?…",
		"https://app.example/back?code=SECRET#SECRET": "https://app.example/back?…#…",
		"https://app.example/back#":                   "https://app.example/back#…",
		"https://ada:SECRET@app.example:8443/back":    "https://app.example:8443/back",
		"https://app.example/a b\u202e\u00e9":         "https://app.example/a%20b%E2%80%AE%C3%A9",
		"https://\u202eapp.example/":                  "https://%E2%80%AEapp.example/",
		"http://[::1]:80/":                            "http://[::1]:80/",
		"com.example.app:/back":                       "com.example.app:/back",
		"com.example.app:SECRET":                      "something that is not an address",
		"SECRET":                                      "something that is not an address",
		"/SECRET":                                     "something that is not an address",
		"//SECRET":                                    "something that is not an address",
		"https://app.example/\n":                      "something that is not an address",
		"https://app.example/%zz":                     "something that is not an address",
		"":                                            "no address",
		long:                                          ("https://app.example/" + strings.Repeat("%C3%A9", 300))[:195] + "…",
		long + "?x#y":                                 ("https://app.example/" + strings.Repeat("%C3%A9", 300))[:195] + "…?…#…",
	} {
		got := LoggedURL(address)
		if got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
		if utf8.RuneCountInString(got) > maxLogged {
			t.Errorf("%q: it has %d characters", address, utf8.RuneCountInString(got))
		}
	}
}
