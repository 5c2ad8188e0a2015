package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Config is what the operator can set. Its zero value with Listen and DataDir works.
type Config struct {
	Listen         string
	ExternalURL    string // empty: made from Listen
	DataDir        string
	Database       string // a postgres:// address; empty: the embedded database in DataDir
	MasterKey      string // the key itself, from the environment
	MasterKeyFile  string
	DomainSuffix   string // empty: the external host name
	FirstAdminFile string
	TLSCert        string
	TLSKey         string
	TrustedProxies []string
	CORSOrigins    []string
	MetricsListen  string
	Development    bool
}

// settled is a Config with every default filled in and every value checked.
type settled struct {
	Config
	external *url.URL
	proxies  []netip.Prefix
}

func (c Config) settle() (*settled, error) {
	s := &settled{Config: c}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return nil, errors.New("--tls-cert and --tls-key go together: set both or none")
	}
	if c.ExternalURL == "" {
		scheme := "http"
		if c.TLSCert != "" {
			scheme = "https"
		}
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return nil, fmt.Errorf("--listen %q is not host:port", c.Listen)
		}
		if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
			host = "localhost"
		}
		s.ExternalURL = scheme + "://" + net.JoinHostPort(host, port)
	}
	var err error
	if s.external, err = url.Parse(s.ExternalURL); err != nil || s.external.Hostname() == "" ||
		(s.external.Scheme != "http" && s.external.Scheme != "https") || strings.Trim(s.external.Path, "/") != "" ||
		s.external.RawQuery != "" || s.external.Fragment != "" || s.external.User != nil {
		return nil, fmt.Errorf("--external-url %q should look like https://id.example.org", s.ExternalURL)
	}
	if c.Development && !isLoopback(s.external.Hostname()) {
		return nil, errors.New("--development is only for an external URL on this machine, such as http://localhost:8080")
	}
	if s.DomainSuffix == "" {
		s.DomainSuffix = s.external.Hostname()
		if _, err := netip.ParseAddr(s.DomainSuffix); err == nil {
			s.DomainSuffix = "localhost"
		}
	}
	s.DomainSuffix = strings.ToLower(strings.Trim(s.DomainSuffix, "."))
	for _, text := range c.TrustedProxies {
		prefix, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxies %q is not an address or a network such as 10.0.0.0/8", text)
		}
		s.proxies = append(s.proxies, prefix)
	}
	for _, origin := range c.CORSOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" {
			return nil, fmt.Errorf("--cors-origins %q should look like https://app.example.org", origin)
		}
	}
	return s, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
