package server

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/base/tracing/otlp"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
	"github.com/signet-idm/signet/internal/ops/verification"
	"github.com/signet-idm/signet/internal/transport/rpc"
)

// Data says where the data is, and the key to it.
type Data struct {
	DataDir       string `help:"Directory of the embedded database, keys and first-admin.json. Default: ${default}." default:"./signet-data" placeholder:"DIR"`
	Database      string `help:"postgres://… to use PostgreSQL instead." placeholder:"URL"`
	MasterKeyFile string `help:"File with the master key. All nodes of a database use the same key." placeholder:"FILE"`
	MasterKey     string `kong:"-"` // the key itself, from the environment
}

// Config is what the operator can set. Its zero value with Listen and DataDir works.
//
// The tags are the flags of signet start: a flag is declared here and nowhere else. The default of a flag is in its tag.
// Where a comment says what zero means, that is for callers without flags, such as tests.
type Config struct {
	Data `kong:"-"` // other commands have these flags, too: each embeds Data by itself

	Listen         string   `help:"Address to listen on. Default: ${default}." default:"localhost:8080" placeholder:"HOST:PORT"`
	ExternalURL    string   `name:"external-url" help:"URL under which clients reach the server. Default: made from --listen." placeholder:"URL"`
	InsecureURL    bool     `name:"insecure-external-url" help:"Accept an external URL with http:// that is not on this machine. Nobody can sign in on the pages then: browsers do not keep their cookies. Only for the API, in a network that you trust."`
	DomainSuffix   string   `help:"Suffix of generated domains. Default: the external host name." placeholder:"DOMAIN"`
	FirstAdminFile string   `help:"File to which the first start writes the administrator's credentials. Default: in the data directory." placeholder:"FILE"`
	TLSCert        string   `name:"tls-cert" help:"Certificate chain (PEM)." placeholder:"FILE"`
	TLSKey         string   `name:"tls-key" help:"Private key (PEM)." placeholder:"FILE"`
	TrustedProxies []string `help:"Addresses or networks of proxies whose X-Forwarded-For header is trusted." placeholder:"NET"`
	CORSOrigins    []string `name:"cors-origins" help:"Origins of browser applications that may call the API." placeholder:"ORIGIN"`
	MetricsListen  string   `help:"Address to serve Prometheus metrics on. Default: off." placeholder:"HOST:PORT"`
	Profiling      bool     `help:"Serve profiles of the program (/debug/pprof) on the metrics address."`
	OutboundAllow  []string `help:"Non-public addresses or networks that the server may call, also without TLS." placeholder:"NET"`
	Development    bool     `help:"For developers: write requested codes to the log, and allow calls to this machine. Needs an external URL on this machine."`

	// Nil: it is served.
	Console *bool `help:"Serve the web console under /console/. --console=false switches it off. Default: on." default:"true"`

	DocsURL string `name:"docs-url" help:"Address of the documentation, with the same pages, to which /docs/ leads instead of showing its own." placeholder:"URL"`

	// Zero: a start does not wait.
	DatabaseWait time.Duration `help:"How long a start waits for a PostgreSQL database that is away. Default: ${default}." default:"1m" placeholder:"TIME"`

	ShutdownDelay time.Duration `help:"How long a server that is told to stop still answers requests, but says that it is not ready, so that proxies send them elsewhere. Default: ${default}." default:"0s" placeholder:"TIME"`

	VerifyEvery time.Duration `help:"How often the server verifies the log, slowly, beside its requests; 0: never. Default: ${default}." default:"24h" placeholder:"TIME"`

	BackupDirectory string        `help:"Directory for scheduled backups of the embedded database. Default: none are made." placeholder:"DIR"`
	BackupEvery     time.Duration `help:"How often a backup is made. Default: 24h." placeholder:"TIME"`
	BackupKeep      int           `help:"How many scheduled backups are kept. Default: 7." placeholder:"NUMBER"`
	BackupMaxAge    time.Duration `help:"Delete scheduled backups that are older, but for the last one. Default: however old." placeholder:"TIME"`

	ZitadelV1 bool `name:"zitadel-v1" env:"SIGNET_ZITADEL_V1" help:"Serve the five core operations under their names in version 1 of ZITADEL's API, too."`

	// Zero: as the flags have them.
	WebhookLease time.Duration `help:"How long a dead node keeps its lease on webhooks. Default: ${default}." default:"30s" placeholder:"TIME"`
	WebhookRetry time.Duration `help:"Time before the first retry of a failed webhook event. Later pauses grow from it. Default: ${default}." default:"5s" placeholder:"TIME"`

	// Zero: as the flag has it.
	StartsPerMinute int `help:"How many sign-ins, devices, resets and sign-outs one network may start per minute. Default: ${default}." default:"600" placeholder:"NUMBER"`

	// Empty: as the flags have them.
	LimitCaller       string `help:"Requests that one caller may send, such as 100/s, 6000/m or off. Default: ${default}." default:"off" placeholder:"RATE"`
	LimitOrganization string `help:"Requests that all callers of one organization may send. Default: ${default}." default:"off" placeholder:"RATE"`
	LimitNetwork      string `help:"Requests that one network may send. Default: ${default}." default:"off" placeholder:"RATE"`
	LimitPublic       string `help:"Requests that one network may send to public paths, such as the pages of signing in. Default: ${default}." default:"12000/m" placeholder:"RATE"`

	EmailsPerOrganization bool `name:"emails-per-organization" help:"Find people by e-mail address only in the organization that the sign-in is for, not in the whole installation."`

	Traces otlp.Settings `embed:"" prefix:"trace-"`

	SMTPURL          string `name:"smtp-url" help:"Mail server: smtps://user@host:465, or smtp://host:587 (STARTTLS). Default: no mail is sent." placeholder:"URL"`
	SMTPFrom         string `name:"smtp-from" help:"Sender of mails, such as Signet <no-reply@id.example.org>." placeholder:"ADDRESS"`
	SMTPPasswordFile string `name:"smtp-password-file" help:"File with the password for the mail server." placeholder:"FILE"`

	SMTPRoots *x509.CertPool `kong:"-"` // who signs the mail server's certificate; nil: as the machine trusts

	// Sockets that somebody else has opened, such as systemd. They count instead of Listen and MetricsListen.
	Listener        net.Listener `kong:"-"`
	MetricsListener net.Listener `kong:"-"`

	Version string `kong:"-"` // of the program, for the metrics

	// where the proof of a domain is looked for; nil: as the machine resolves names
	Resolver org.Resolver     `kong:"-"`
	Hasher   *secret.Hasher   `kong:"-"` // of passwords; nil: secret.NewHasher, which is what the program has
	Clock    func() time.Time `kong:"-"` // nil: time.Now, which is what the program has
}

// settled is a Config with every default filled in and every value checked, before anything is opened or made.
type settled struct {
	Config
	external    *url.URL
	docs        *url.URL // nil: the program's own
	proxies     []netip.Prefix
	outbound    []netip.Prefix
	certificate *tls.Certificate // nil: cleartext
	smtp        *mail.SMTP       // nil: no mail
	traces      *otlp.Checked    // nil: nothing is traced

	caller, organization, network, public ratelimit.Rate
}

// settleDocs checks the address of the documentation.
func (s *settled) settleDocs() error {
	if s.DocsURL == "" {
		return nil
	}
	u, err := url.Parse(s.DocsURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return fmt.Errorf("--docs-url %q must be an address such as https://docs.example.com/signet", s.DocsURL)
	}
	s.docs = u
	return nil
}

// maxSuffix leaves room for a label in front of it: a domain has at most 200 characters.
const maxSuffix = 140

// Bounds of StartsPerMinute: with less nobody could sign in after some typing errors, with more nothing is held up.
const (
	minStarts = 10
	maxStarts = 1_000_000
)

func (c Config) settle() (*settled, error) {
	s := &settled{Config: c}
	if c.Resolver == nil {
		s.Resolver = net.DefaultResolver
	}
	if c.Clock == nil {
		s.Clock = time.Now
	}
	if c.Hasher == nil {
		s.Hasher = secret.NewHasher(0, 0)
	}
	if c.Console == nil {
		s.Console = new(true)
	}
	if c.Listener != nil {
		c.Listen = c.Listener.Addr().String()
		s.Listen = c.Listen
	}
	if err := checkAddress(c.Listen); err != nil {
		return nil, fmt.Errorf("--listen %q must be an address such as localhost:8080: %w", c.Listen, err)
	}
	if err := checkAddress(c.MetricsListen); err != nil && c.MetricsListen != "" {
		return nil, fmt.Errorf("--metrics-listen %q must be an address such as localhost:9090: %w",
			c.MetricsListen, err)
	}
	if c.Profiling && c.MetricsListen == "" && c.MetricsListener == nil {
		return nil, errors.New("--profiling needs --metrics-listen: profiles are served there and nowhere else")
	}
	if err := c.checkDatabase(); err != nil {
		return nil, err
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return nil, errors.New("--tls-cert and --tls-key belong together: set both or none")
	}
	if c.TLSCert != "" {
		certificate, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("reading --tls-cert and --tls-key: %w", err)
		}
		s.certificate = &certificate
	}
	if err := s.settleExternal(); err != nil {
		return nil, err
	}
	if err := s.checkCookies(); err != nil {
		return nil, err
	}
	if c.Development && !isLoopback(s.external.Hostname()) {
		return nil, errors.New("--development needs an external URL on this machine, such as http://localhost:8080")
	}
	if err := s.settleDocs(); err != nil {
		return nil, err
	}
	if err := s.settleSuffix(); err != nil {
		return nil, err
	}
	if err := s.settleMail(); err != nil {
		return nil, err
	}
	var err error
	if s.traces, err = c.Traces.Check(); err != nil {
		return nil, err
	}
	for _, text := range c.TrustedProxies {
		prefix, err := parsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxies %q is not an address or a network such as 10.0.0.0/8", text)
		}
		s.proxies = append(s.proxies, prefix)
	}
	if err := s.settleOutbound(); err != nil {
		return nil, err
	}
	if err := s.settleBackups(); err != nil {
		return nil, err
	}
	if c.VerifyEvery != 0 && (c.VerifyEvery < verification.MinEvery || c.VerifyEvery > verification.MaxEvery) {
		return nil, fmt.Errorf("--verify-every must be between %s and %s, or 0 for never", verification.MinEvery,
			verification.MaxEvery)
	}
	if c.DatabaseWait < 0 || c.DatabaseWait > maxWait {
		return nil, errors.New("--database-wait must be between 0s and 24h")
	}
	if c.ShutdownDelay < 0 || c.ShutdownDelay > maxShutdownDelay {
		return nil, errors.New("--shutdown-delay must be between 0s and 5m")
	}
	if c.WebhookLease != 0 && (c.WebhookLease < time.Second || c.WebhookLease > time.Hour) {
		return nil, errors.New("--webhook-lease must be between 1s and 1h")
	}
	if c.WebhookRetry != 0 && (c.WebhookRetry < 100*time.Millisecond || c.WebhookRetry > time.Minute) {
		return nil, errors.New("--webhook-retry must be between 100ms and 1m")
	}
	if c.StartsPerMinute < 0 || c.StartsPerMinute > maxStarts ||
		c.StartsPerMinute != 0 && c.StartsPerMinute < minStarts {
		return nil, fmt.Errorf("--starts-per-minute must be between %d and %d", minStarts, maxStarts)
	}
	s.StartsPerMinute = cmp.Or(c.StartsPerMinute, ratelimit.DefaultPerNetwork)
	if err := s.settleLimits(); err != nil {
		return nil, err
	}
	s.CORSOrigins = nil
	for _, text := range c.CORSOrigins {
		origin := strings.TrimSpace(text)
		if !rpc.IsOrigin(origin) {
			return nil, fmt.Errorf("--cors-origins %q must be an origin such as https://app.example.org, in lower case and without a path", text)
		}
		s.CORSOrigins = append(s.CORSOrigins, origin)
	}
	return s, nil
}

func (s *settled) settleLimits() (err error) {
	for _, l := range []struct {
		flag, text, otherwise string
		rate                  *ratelimit.Rate
	}{
		{"--limit-caller", s.LimitCaller, "off", &s.caller},
		{"--limit-organization", s.LimitOrganization, "off", &s.organization},
		{"--limit-network", s.LimitNetwork, "off", &s.network},
		{"--limit-public", s.LimitPublic, ratelimit.DefaultPublic.String(), &s.public},
	} {
		if *l.rate, err = ratelimit.Parse(cmp.Or(l.text, l.otherwise)); err != nil {
			return fmt.Errorf("%s %q %w", l.flag, l.text, err)
		}
	}
	return nil
}

// settleOutbound lists the networks that are called although they are not public. A developer's own machine is one.
func (s *settled) settleOutbound() error {
	for _, text := range s.OutboundAllow {
		prefix, err := parsePrefix(strings.TrimSpace(text))
		if err != nil || prefix.Addr().Is4In6() {
			return fmt.Errorf("--outbound-allow %q is not an address or a network such as 10.0.0.0/8", text)
		}
		s.outbound = append(s.outbound, prefix)
	}
	if s.Development {
		s.outbound = append(s.outbound, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	}
	return nil
}

// checkDatabase does not repeat the value: there may be a password in it.
func (c Config) checkDatabase() error {
	if c.Database != "" && !store.IsPostgres(c.Database) {
		return errors.New("--database must be a URL such as postgres://user@host:5432/name; leave it out for the embedded database")
	}
	return nil
}

func (s *settled) settleExternal() error {
	if s.ExternalURL == "" {
		scheme := "http"
		if s.certificate != nil {
			scheme = "https"
		}
		host, name, _ := net.SplitHostPort(s.Listen)
		port, _ := net.LookupPort("tcp", name) // both are known to be fine
		if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
			host = "localhost"
		}
		s.external = &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, strconv.Itoa(port))}
		s.ExternalURL = s.external.String()
		return nil
	}
	u, err := url.Parse(s.ExternalURL)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("--external-url %q must be a URL such as https://id.example.org", hideUser(s.ExternalURL))
	}
	s.external = &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}
	if strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("--external-url %q must not have a path: signet needs all of a host. "+
			"Use %s, or a host name of its own", s.ExternalURL, s.external)
	}
	s.ExternalURL = s.external.String()
	return nil
}

// checkCookies refuses a URL at which people cannot sign in: browsers keep our cookies only where nobody on the way can
// read them.
func (s *settled) checkCookies() error {
	if s.external.Scheme == "https" || isLoopback(s.external.Hostname()) || s.InsecureURL {
		return nil
	}
	return fmt.Errorf("nobody could sign in at %s: browsers keep the cookies of signing in only for https, or for this machine. "+
		"Set --external-url to the https:// URL under which clients reach the server (with --tls-cert and --tls-key, or behind a proxy). "+
		"If only the API is used, and not the pages, add --insecure-external-url", s.ExternalURL)
}

// hideUser keeps a password that somebody put into a URL out of the message about it.
func hideUser(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if at := strings.LastIndexByte(rest, '@'); found && at >= 0 {
		return scheme + "://…" + rest[at:]
	}
	return text
}

func (s *settled) settleSuffix() error {
	suffix := s.DomainSuffix
	if suffix == "" {
		suffix = s.external.Hostname()
		if _, err := netip.ParseAddr(suffix); err == nil {
			suffix = "localhost"
		}
	}
	ascii, problem := syntax.Domain(strings.Trim(suffix, "."))
	if problem == nil && len(ascii) > maxSuffix {
		problem = errs.Plain(fmt.Sprintf("must have at most %d characters", maxSuffix))
	}
	if problem != nil {
		return fmt.Errorf("--domain-suffix %q must be a domain such as id.example.org: it %s", suffix, problem.Message)
	}
	s.DomainSuffix = ascii
	return nil
}

func (s *settled) settleMail() (err error) {
	if s.SMTPURL == "" {
		if s.SMTPFrom != "" || s.SMTPPasswordFile != "" {
			return errors.New("--smtp-from and --smtp-password-file need --smtp-url")
		}
		return nil
	}
	s.smtp, err = mail.NewSMTP(mail.Settings{URL: s.SMTPURL, From: s.SMTPFrom, PasswordFile: s.SMTPPasswordFile,
		Roots: s.SMTPRoots})
	return err
}

// listening puts the port that the system chose into a URL that was made from --listen.
func (s *settled) listening(addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok && s.external.Port() == "0" {
		s.external.Host = net.JoinHostPort(s.external.Hostname(), strconv.Itoa(tcp.Port))
		s.ExternalURL = s.external.String()
	}
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("it must be a host and a port")
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return errors.New("there is no such port")
	}
	return nil
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
