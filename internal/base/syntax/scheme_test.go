package syntax_test

import (
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/syntax"
)

func TestOnlyADomainNameInReverseIsAPrivateScheme(t *testing.T) {
	for scheme, want := range map[string]bool{
		"com.example":                                true,
		"com.example.app":                            true,
		"COM.Example.App":                            true,
		"com.my-company.app-2":                       true,
		"com.googleusercontent.apps.1234-ab5":        true,
		"msauth.com.example.app":                     true,
		"xn--p1ai.xn--e1afmkfd.app":                  true,
		"com.4thoffice.app":                          true,
		"com." + strings.Repeat("a", 63):             true,
		"com." + strings.Repeat("a", 64):             false,
		"com" + strings.Repeat(".a", 125):            true,
		"com" + strings.Repeat(".a", 126):            false,
		strings.Repeat("com.example.", 10_000) + "a": false,

		// Programs of systems that others were led into, and their relatives.
		"ms-msdt": false, "search-ms": false, "search": false, "ssh": false, "telnet": false, "ms-officecmd": false,
		"ms-word": false, "ms-appinstaller": false,
		"steam": false, "zoommtg": false, "tel": false, "facetime": false, "sms": false, "intent": false,
		"android-app": false, "shortcuts": false,
		"itms-services": false, "x-apple.systempreferences": false, "com.apple.tv": false, "Com.Apple.TV": false,
		"microsoft.windows.camera": false,
		"windows.tbauth":           false, "com.microsoft.builder3dprinter": false, "ldap": false, "smb": false,
		"vscode": false, "git": false,
		"soap.beep": false, "iris.xpc": false, "z39.50r": false,

		// What browsers run or read.
		"javascript": false, "JavaScript": false, "vbscript": false, "data": false, "file": false, "blob": false,
		"about": false, "view-source": false,
		"http": false, "https": false, "ws": false, "ftp": false, "chrome-extension": false, "web+app": false,

		"": false, ".": false, "com": false, "com.": false, ".com": false, "com..app": false, "com.example.": false,
		"c.example": false, "1com.example": false,
		"co-m.example": false, "com.-example": false, "com.example-": false, "com.ex_ample": false,
		"com.ex+ample": false, "com.ex ample": false,
		"com.ex%61mple": false, "com.exämple": false, "ｃom.example": false, "java\nscript.example": false,
	} {
		if got := syntax.PrivateScheme(scheme); got != want {
			t.Errorf("%.80q: %t", scheme, got)
		}
	}
}
