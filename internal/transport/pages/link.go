package pages

import (
	"errors"
	"html/template"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/signet-idm/signet/internal/base/syntax"
)

// Link is an address that a page may point to. The zero Link is none, and what would carry it is left out.
type Link struct{ address string }

// To gives the link to one of our own pages. The path is written by us; what comes from requests belongs into the
// query.
func To(path string, query url.Values) Link {
	u := url.URL{Path: "/" + strings.TrimLeft(path, "/\\"), RawQuery: query.Encode()}
	return Link{u.String()}
}

// ConsolePage gives an address of the console that people may be sent to, as it is. Everything else is nothing.
func ConsolePage(to string) string {
	if u := PlainPath(to); u != nil && strings.HasPrefix(to, PathConsole) {
		return u.RequestURI()
	}
	return ""
}

// PlainPath reads a path of this server, with a query perhaps, that browsers cannot take for anything else; nil for
// everything else.
func PlainPath(to string) *url.URL {
	u, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(to, "/") || u.Scheme != "" || u.Opaque != "" || u.Host != "" || u.User != nil ||
		u.Fragment != "" || strings.Contains(to, "\\") ||
		path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") {
		return nil
	}
	return u
}

var errLink = errors.New("not an address that a page may point to")

// Outward gives the link to an address that somebody else registered: https, http on this machine, or the private
// scheme of an installed application. Everything else is refused: browsers run it, or open some program with it.
func Outward(address string) (Link, error) {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || strings.ContainsFunc(address, unfit) {
		return Link{}, errLink
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "https" && u.Hostname() != "":
	case scheme == "http" && isLoopback(u.Hostname()):
	case syntax.PrivateScheme(scheme):
	default:
		return Link{}, errLink
	}
	return Link{u.String()}, nil
}

// AtProvider gives the link to an identity provider. It may be http: the operator decides in which networks providers
// may be that.
func AtProvider(address string) (Link, error) {
	if u, err := url.Parse(address); err == nil && strings.EqualFold(u.Scheme, "http") && u.Hostname() != "" &&
		u.User == nil && !strings.ContainsFunc(address, unfit) {
		return Link{u.String()}, nil
	}
	return Outward(address)
}

// unfit tells which characters no address may have.
func unfit(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }

// IsNone tells whether there is no link.
func (l Link) IsNone() bool { return l.address == "" }

// String gives the address.
func (l Link) String() string { return l.address }

// url is for templates: the address has been checked when the link was made, and html/template knows no schemes of
// applications.
func (l Link) url() template.URL { return template.URL(l.address) }

func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// hostForm is what a policy can name: it knows neither addresses in brackets nor the other characters that URLs allow
// in a host, some of which would end the directive.
var hostForm = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]{1,5})?$`)

// formTarget gives what has to be in form-action for a redirect to this URI; nothing where a browser could not go
// there.
func formTarget(redirectURI string) string {
	if redirectURI == "" {
		return ""
	}
	if _, err := Outward(redirectURI); err != nil {
		return ""
	}
	u, err := url.Parse(redirectURI)
	if err != nil {
		return ""
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case syntax.PrivateScheme(scheme), scheme == "http" && strings.Contains(u.Host, "["):
		return " " + scheme + ":"
	case hostForm.MatchString(u.Host):
		return " " + scheme + "://" + u.Host
	}
	return ""
}
