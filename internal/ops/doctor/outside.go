package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer is how much of an answer is read.
const maxAnswer = 1 << 20

// get calls an address that the operator has configured, and follows no redirect.
func (p *patient) get(ctx context.Context, address string, roots *tls.Config) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: roots, DisableKeepAlives: true}
	client := &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer, text, err
}

// local is the address of the server on this machine.
func (p *patient) local() string {
	host, port, err := net.SplitHostPort(p.config.Listen)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	scheme := "http"
	if p.config.TLSCert != "" {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}).String()
}

// ready asks the server on this machine. Its certificate is for another name, and this call stays on the machine.
func (p *patient) ready(ctx context.Context) (*http.Response, []byte, error) {
	return p.get(ctx, p.local()+"/readyz", &tls.Config{InsecureSkipVerify: true})
}

func (p *patient) answers(ctx context.Context) bool {
	answer, _, err := p.ready(ctx)
	return err == nil && (answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusServiceUnavailable)
}

func checkServer(ctx context.Context, p *patient) []Finding {
	if p.settings == nil {
		return nil
	}
	if !p.running {
		return warn("Start it, if it should run here.", "no server answers at %s", p.local())
	}
	answer, text, err := p.ready(ctx)
	switch {
	case err != nil:
		return warn("Look into the log of the server.", "the server does not answer: %v", errors.Unwrap(err))
	case answer.StatusCode != http.StatusOK:
		return fail("Look into the log of the server. See docs/operations/faults.md.",
			"the server is not ready: %.300s", text)
	}
	if bytes.Contains(text, []byte("the database has lost events")) {
		return fail(lostDo, "the server has noticed that the database has lost events: %.300s",
			strings.TrimSpace(string(text)))
	}
	return fine("the server is ready: %.300s", strings.TrimSpace(string(text)))
}

func checkCertificate(_ context.Context, p *patient) []Finding {
	if p.settings == nil || p.settings.Certificate == nil {
		return nil
	}
	leaf, err := x509.ParseCertificate(p.settings.Certificate.Certificate[0])
	if err != nil {
		return fail("Get a new certificate for --tls-cert.", "the certificate cannot be read: %v", err)
	}
	found := p.judgeCertificate("of --tls-cert", leaf)
	if u, err := url.Parse(p.settings.ExternalURL); err == nil {
		if err := leaf.VerifyHostname(u.Hostname()); err != nil {
			found = append(found,
				warn("Get a certificate for the host name of --external-url, unless a proxy with its own is in front of the server.", "the certificate of --tls-cert is not for %s", u.Hostname())...)
		}
	}
	return found
}

// judgeCertificate judges how long a certificate is still valid.
func (p *patient) judgeCertificate(which string, leaf *x509.Certificate) []Finding {
	now := p.Clock()
	left := leaf.NotAfter.Sub(now)
	switch {
	case left <= 0:
		return fail("Renew it, and restart the server.", "the certificate %s expired %s ago", which, ago(-left))
	case now.Before(leaf.NotBefore):
		return fail("Check the clock of this machine, or wait.", "the certificate %s is not valid yet", which)
	case left < certExpires:
		return warn("Renew it, restart the server, and find out why that did not happen by itself.",
			"the certificate %s expires in %s", which, ago(left))
	}
	return fine("the certificate %s is valid for another %s", which, ago(left))
}

// checkExternal looks at the external address as everybody else does: is it this server?
func checkExternal(ctx context.Context, p *patient) (found []Finding) {
	if p.settings == nil {
		return nil
	}
	s := p.settings
	if strings.HasPrefix(s.ExternalURL, "https://") && s.Certificate == nil && len(s.TrustedProxies) == 0 {
		found = append(found, warn("List the proxy in --trusted-proxies.",
			"a proxy ends TLS for %s, but --trusted-proxies is empty: all requests seem to come from the proxy, and people share limits and throttles", s.ExternalURL)...)
	}
	began := p.Clock()
	answer, text, err := p.get(ctx, s.ExternalURL+"/.well-known/openid-configuration", &tls.Config{RootCAs: p.Roots})
	if err != nil && !p.running {
		return append(found, warn("Start the server, and run signet doctor again.",
			"%s was not reached, and no server runs here", s.ExternalURL)...)
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return append(found, fail("Renew the certificate.", "the certificate of %s has expired or is not valid yet",
			s.ExternalURL)...)
	}
	if err != nil {
		return append(found, fail("Check DNS, the firewall, the proxy and the certificate for --external-url.",
			"%s cannot be reached from this machine: %v", s.ExternalURL, errors.Unwrap(err))...)
	}
	if answer.TLS != nil && len(answer.TLS.PeerCertificates) > 0 {
		found = append(found, p.judgeCertificate("of "+s.ExternalURL, answer.TLS.PeerCertificates[0])...)
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		took := p.Clock().Sub(began) + time.Second // it has no fractions
		found = append(found, judgeClock(s.ExternalURL, date.Sub(began)+time.Second, took,
			"Synchronize the clocks of all machines (NTP, chrony).")...)
	}
	var discovery struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	const notThis = "Check --external-url, and that the proxy leads there to this server. See docs/operations/proxies.md."
	if err := json.Unmarshal(text, &discovery); err != nil || answer.StatusCode != http.StatusOK {
		return append(found, fail(notThis, "%s does not answer like a Signet server: HTTP %d", s.ExternalURL,
			answer.StatusCode)...)
	}
	if discovery.Issuer != s.ExternalURL {
		return append(found, fail(notThis, "the server at %s says that it is %.200q", s.ExternalURL,
			discovery.Issuer)...)
	}
	if len(p.keys) > 0 && strings.HasPrefix(discovery.Keys, s.ExternalURL+"/") {
		same, err := p.hasOurKeys(ctx, discovery.Keys)
		switch {
		case err != nil:
			return append(found, warn(notThis, "the keys of %s cannot be read: %v", s.ExternalURL, err)...)
		case !same:
			return append(found,
				fail(notThis, "%s leads to another installation: it publishes none of the signing keys in this database", s.ExternalURL)...)
		}
	}
	return append(found, fine("%s is this installation", s.ExternalURL)...)
}

// hasOurKeys tells whether a key set has a key of this database.
func (p *patient) hasOurKeys(ctx context.Context, address string) (bool, error) {
	answer, text, err := p.get(ctx, address, &tls.Config{RootCAs: p.Roots})
	if err != nil {
		return false, errors.Unwrap(err)
	}
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || answer.StatusCode != http.StatusOK {
		return false, fmt.Errorf("HTTP %d", answer.StatusCode)
	}
	ours := map[string]bool{}
	for _, k := range p.keys {
		ours[k.ID] = true
	}
	for _, k := range set.Keys {
		if ours[k.ID] {
			return true, nil
		}
	}
	return false, nil
}

func checkMail(ctx context.Context, p *patient) []Finding {
	switch {
	case p.settings == nil:
		return nil
	case p.settings.Mail == nil:
		return warn("Set --smtp-url and --smtp-from, unless people never need mails.",
			"no mail server is configured: people cannot reset their passwords, and invitations are not sent")
	case !p.Mail:
		return fine("the mail server %s was not asked: --mail does that, without sending anything",
			p.settings.Mail.Server())
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	if err := p.settings.Mail.Check(ctx); err != nil {
		return fail("Check --smtp-url, the password and the firewall.", "the mail server %s does not let us in: %v",
			p.settings.Mail.Server(), err)
	}
	return fine("the mail server %s lets us in", p.settings.Mail.Server())
}
