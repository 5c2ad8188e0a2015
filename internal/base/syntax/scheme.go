package syntax

import (
	"slices"
	"strings"
)

// systemSchemes look like domain names in reverse, and some are, but they belong to operating systems and to other
// protocols.
var systemSchemes = []string{"com.apple.", "com.microsoft.", "iris.", "microsoft.", "soap.", "windows."}

// PrivateScheme tells whether the scheme of a URI, in any case, is a domain name in reverse, such as com.example.app:
// what RFC 8252, section 7.1, wants for the private use of an installed application. Every other scheme may lead into a
// program that has nothing to do with signing in (ssh:, search-ms:), and nobody can list all of those.
func PrivateScheme(scheme string) bool {
	if len(scheme) > maxScheme {
		return false
	}
	scheme = strings.ToLower(scheme)
	if slices.ContainsFunc(systemSchemes, func(own string) bool { return strings.HasPrefix(scheme, own) }) {
		return false
	}
	labels := strings.Split(scheme, ".")
	// A top-level domain has neither digits nor hyphens, unless it stands for one that is not ASCII.
	if top := labels[0]; len(labels) < 2 || len(top) < 2 ||
		strings.Trim(top, lowerLetters) != "" && !strings.HasPrefix(top, "xn--") {
		return false
	}
	return !slices.ContainsFunc(labels, func(label string) bool {
		return label == "" || len(label) > maxSchemeLabel || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, lowerLetters+"0123456789-") != ""
	})
}

// As long as names and labels in DNS are, in bytes.
const (
	maxScheme      = 253
	maxSchemeLabel = 63
)

const lowerLetters = "abcdefghijklmnopqrstuvwxyz"
