// Package outbound makes all connections from Signet to addresses that other people chose: key sets, back-channel
// logout, webhooks, discovery. It speaks only https, and only with the public internet, so that nobody can use the
// server to reach the internal network. Internal addresses are reached only if the operator has allowed them.
//
// A host name is resolved once for each connection, and every address in the answer is checked. The connection goes to
// a checked address and not to the name, and the address is checked again on the socket itself. So a DNS answer that
// changes in between has no effect. Every redirect is checked in the same way.
package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/tracing"
)

// Limits that a Config without a value of its own has, and those that nobody sets.
const (
	defaultTimeout   = 10 * time.Second
	defaultRedirects = 3

	userAgent       = "signet"
	connectTimeout  = 3 * time.Second // to one of several addresses
	maxCandidates   = 8               // addresses of a name that are tried
	maxURL          = 2000
	maxHeader       = 32 << 10
	maxIdle         = 32
	maxIdlePerHost  = 2
	maxConnsPerHost = 8
	idleTimeout     = 30 * time.Second
	maxCalls        = 64      // that are waited for at once
	maxDrained      = 4 << 10 // bytes of a body that nobody wants, read so that its connection can be used again
)

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is what can be chosen. Its zero value reaches the public internet by https.
type Config struct {
	// Allow are networks that are reached although they are not public. There, and only there, plain http will do.
	Allow []netip.Prefix
	// Timeout of a request with all its redirects, up to the last byte of the answer; zero: ten seconds.
	Timeout time.Duration
	// MaxRedirects that are followed for a GET; zero: three, negative: none.
	MaxRedirects int
	// ConnsPerHost at once, in use or not; zero: eight, two of them while they are not in use.
	ConnsPerHost int
	// Resolver of names; nil: as the machine resolves them.
	Resolver Resolver
	// Roots that certificates have to lead to; nil: those of the machine.
	Roots *x509.CertPool
}

// Reasons of this package.
const (
	Refused errs.Reason = "OUTBOUND_REFUSED"
	Failed  errs.Reason = "OUTBOUND_FAILED"
)

// Errors of this package. What the other side answered is never part of one.
var (
	// ErrRefused: the address is one that Signet does not call.
	ErrRefused = errs.New(errs.FailedPrecondition, Refused,
		"signet does not call this address: it must be an https:// URL of a public host, or in a network that the operator allows with --outbound-allow")
	// ErrFailed: the other side did not answer, or not in a way that is understood.
	ErrFailed = errs.New(errs.Unavailable, Failed,
		"the other server did not answer correctly: check that the address is right and the server works, then try again")
)

// NewCalls gives what organizations share of the calls that their own people, or their applications, make the server
// wait for: key sets, DNS records, messages that try a webhook. A call may take as long as the other side likes, so no
// organization has more than half of them.
func NewCalls() *fairqueue.Slots {
	return fairqueue.New(fairqueue.Bounds{Slots: maxCalls, Waiting: 4 * maxCalls, Reserve: true})
}

// Response is what the other side answered, whatever its status is.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Client calls others. It is safe for concurrent use.
type Client struct {
	config Config
	secure *http.Transport // https
	clear  *http.Transport // http, into allowed networks only
}

// New makes a client.
func New(c Config) *Client {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxRedirects == 0 {
		c.MaxRedirects = defaultRedirects
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	client := &Client{config: c}
	client.secure = client.transport(func(addr netip.Addr) bool { return public(addr) || within(c.Allow, addr) })
	client.clear = client.transport(func(addr netip.Addr) bool { return within(c.Allow, addr) })
	return client
}

// transport makes the connections, to addresses that may be reached and to no others. A proxy from the environment
// would be one of these others. It decompresses nothing, and keeps neither cookies nor many connections.
func (c *Client) transport(may func(netip.Addr) bool) *http.Transport {
	d := &dialer{resolver: c.config.Resolver, may: may}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	idle, most, all := maxIdlePerHost, maxConnsPerHost, maxIdle
	if n := c.config.ConnsPerHost; n > 0 {
		idle, most, all = n, n, max(n, maxIdle)
	}
	return &http.Transport{
		Proxy: nil, DialContext: d.dial, Protocols: protocols, DisableCompression: true,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.config.Roots},
		TLSHandshakeTimeout:    c.config.Timeout,
		MaxResponseHeaderBytes: maxHeader, MaxIdleConns: all, MaxIdleConnsPerHost: idle, MaxConnsPerHost: most,
		IdleConnTimeout: idleTimeout,
	}
}

// Close gives back the connections that are not in use.
func (c *Client) Close() {
	c.secure.CloseIdleConnections()
	c.clear.CloseIdleConnections()
}

// Get fetches what is at an address, following redirects, with a body of at most limit bytes; 0: it is not read.
// Errors: ErrRefused, ErrFailed.
func (c *Client) Get(ctx context.Context, address string, limit int64) (*Response, error) {
	return c.do(ctx, http.MethodGet, address, nil, nil, limit)
}

// GetWith is Get with headers. It follows no redirect: the headers are meant for nobody else.
func (c *Client) GetWith(ctx context.Context, address string, header map[string]string,
	limit int64) (*Response, error) {
	return c.do(ctx, http.MethodGet, address, header, nil, limit)
}

// Post sends something to an address. It follows no redirect: what was sent is meant for nobody else. The body of the
// answer has at most limit bytes; 0: it is not read. Errors: ErrRefused, ErrFailed.
func (c *Client) Post(ctx context.Context, address, contentType string, body []byte, limit int64) (*Response, error) {
	return c.PostWith(ctx, address, map[string]string{"Content-Type": contentType}, body, limit)
}

// PostWith is Post with headers.
func (c *Client) PostWith(ctx context.Context, address string, header map[string]string, body []byte,
	limit int64) (*Response, error) {
	return c.do(ctx, http.MethodPost, address, header, body, limit)
}

func (c *Client) do(ctx context.Context, method, address string, header map[string]string, body []byte,
	limit int64) (_ *Response, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	ctx, span := tracing.Start(ctx, "outbound")
	span.Set("http.request.method", method)
	defer func() { span.End(err) }()
	target, err := Check(address)
	if err != nil {
		return nil, err
	}
	for redirects := 0; ; redirects++ {
		answer, err := c.send(ctx, method, target, header, body)
		if err != nil {
			return nil, refusedOrFailed(err)
		}
		location := answer.Header.Get("Location")
		if method != http.MethodGet || header != nil || !isRedirect(answer.StatusCode) || location == "" {
			span.Count("http.response.status_code", answer.StatusCode)
			return read(answer, limit)
		}
		answer.Body.Close()
		if redirects >= c.config.MaxRedirects {
			return nil, ErrFailed.Because(fmt.Errorf("%s redirects too often", target.Host))
		}
		if target, err = follow(target, location); err != nil {
			return nil, err
		}
	}
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow gives the next address of a redirect, which never leads from https to http.
func follow(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil {
		return nil, ErrRefused.Because(errors.New("a redirect to an invalid URL"))
	}
	if from.Scheme == "https" && to.Scheme != "https" {
		return nil, ErrRefused.Because(fmt.Errorf("%s redirects out of https", from.Host))
	}
	return Check(to.String())
}

// Check tells whether an address is written so that it could be called. Whether it may be is known only when its name
// is resolved, so this takes nothing from the care of a call. Errors: ErrRefused.
func Check(address string) (*url.URL, error) {
	if len(address) > maxURL {
		return nil, ErrRefused.Because(errors.New("the URL is too long"))
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, ErrRefused.Because(errors.New("not a URL")) // err would quote it, and there may be a password in it
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, ErrRefused.Because(errors.New("neither https nor http"))
	case u.Hostname() == "" || u.Opaque != "":
		return nil, ErrRefused.Because(errors.New("no host"))
	case u.User != nil:
		return nil, ErrRefused.Because(errors.New("a user in the URL"))
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// Accepts tells whether an address could be called by this client, as far as that shows: an address in digits is judged
// as it will be when it is called, and http is for networks that the operator allows. Errors: ErrRefused.
func (c *Client) Accepts(address string) error {
	u, err := Check(address)
	if err != nil {
		return err
	}
	if u.Scheme == "http" && len(c.config.Allow) == 0 {
		return ErrRefused.Because(errors.New("http, and no network is allowed"))
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil // a name, which is judged when it is resolved
	}
	if within(c.config.Allow, addr) || u.Scheme == "https" && public(addr) {
		return nil
	}
	return ErrRefused.Because(errors.New("an address that is not public"))
}

func (c *Client) send(ctx context.Context, method string, target *url.URL, header map[string]string,
	body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, ErrRefused.Because(errors.New("not a URL"))
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept-Encoding", "identity")
	if target.Scheme == "https" {
		return c.secure.RoundTrip(request)
	}
	return c.clear.RoundTrip(request)
}

// read reads the body of an answer, up to its limit.
func read(answer *http.Response, limit int64) (*Response, error) {
	defer answer.Body.Close()
	out := &Response{Status: answer.StatusCode, Header: answer.Header}
	if limit <= 0 {
		if 0 < answer.ContentLength && answer.ContentLength <= maxDrained {
			// what it says, and whether it comes, does not matter
			_, _ = io.CopyN(io.Discard, answer.Body, answer.ContentLength)
		}
		return out, nil
	}
	if encoding := answer.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, ErrFailed.Because(errors.New("the answer is compressed, although that was not requested"))
	}
	if answer.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	if err != nil {
		return nil, refusedOrFailed(err)
	}
	if int64(len(body)) > limit {
		return nil, tooLarge(limit)
	}
	out.Body = body
	return out, nil
}

func tooLarge(limit int64) error {
	return ErrFailed.Because(fmt.Errorf("the answer has more than %d bytes", limit))
}

// refusedOrFailed keeps a refusal that comes back through the transport as what it is. Of failures only those are kept
// that are known not to quote the other side.
func refusedOrFailed(err error) error {
	if refusal, ours := errors.AsType[*errs.Error](err); ours {
		return refusal
	}
	_, network := errors.AsType[net.Error](err) // also DNS, and everything that took too long
	if network || TroubleOf(err) != Unclear || errors.Is(err, context.Canceled) {
		return ErrFailed.Because(err)
	}
	return ErrFailed.Because(errors.New("the answer or the host name is not valid"))
}

// dialer connects to the addresses of a name that may be reached.
type dialer struct {
	resolver Resolver
	may      func(netip.Addr) bool
}

func (d *dialer) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	candidates, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, addr := range candidates[:min(len(candidates), maxCandidates)] {
		conn, err := d.connect(ctx, network, net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		problems = append(problems, err)
	}
	return nil, errors.Join(problems...)
}

// resolve gives the addresses of a host. One among them that may not be reached is enough to refuse all: a name that
// means the inside and the outside at once is up to something.
func (d *dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	candidates := []netip.Addr{}
	if addr, err := netip.ParseAddr(host); err == nil {
		candidates = append(candidates, addr)
	} else if candidates, err = d.resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	if len(candidates) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	for i, addr := range candidates {
		if candidates[i] = addr.Unmap(); !d.may(addr) {
			return nil, ErrRefused.Because(fmt.Errorf("%s is at %s", host, addr))
		}
	}
	return candidates, nil
}

// connect makes a connection to an address. Control sees the address that the socket is about to connect to, whatever
// was judged before.
func (d *dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	socket := net.Dialer{
		Timeout:   connectTimeout,
		KeepAlive: idleTimeout,
		Control: func(_, address string, _ syscall.RawConn) error {
			real, err := netip.ParseAddrPort(address)
			if err != nil || !d.may(real.Addr()) {
				return ErrRefused.Because(fmt.Errorf("a connection to %s", address))
			}
			return nil
		},
	}
	return socket.DialContext(ctx, network, address)
}
