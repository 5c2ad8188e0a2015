// Command signet is the Signet server and its operator's tools.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"

	"github.com/signet-idm/signet/internal/base/progress"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/tracing/otlp"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/life/setup"
	"github.com/signet-idm/signet/internal/ops/server"
)

// version is that of the newest section of CHANGELOG.md. Builds between two releases tell theirs apart by the commit.
const version = "0.1.0"

// commit is set by the linker in a release, so that its bytes do not depend on how the repository was cloned.
var commit string

type cli struct {
	Config configFile `help:"YAML file with the same settings: one key per flag, without the leading dashes." placeholder:"FILE"`

	Start   startCmd   `cmd:"" help:"Run the server. The first start sets everything up."`
	Health  healthCmd  `cmd:"" help:"Ask the server on this machine whether it is ready: exit with 0 if it is, else with 1."`
	Migrate migrateCmd `cmd:"" help:"Bring the data to this version, as a start would. With the embedded database, stop the server first."`
	Rebuild rebuildCmd `cmd:"" help:"Rebuild the state tables from the log, or check that they match it."`
	Doctor  doctorCmd  `cmd:"" help:"Examine settings, database, keys, disk, certificates, backups and the external address, and say what to do. Takes the flags of start. Can run beside a server. Exit code: 0 fine, 1 warnings, 2 errors."`
	Verify  verifyCmd  `cmd:"" help:"Check that the log is unchanged. Can run beside a server."`
	Admin   struct {
		Recover recoverCmd    `cmd:"" help:"Create a new owner of the installation with a token. Stop the server first."`
		First   firstAdminCmd `cmd:"" help:"Print the credentials that the first start has left, for images without a shell. Can run beside a server."`
	} `cmd:"" help:"Emergency access with the data directory or the database."`
	Keys struct {
		List   listKeysCmd   `cmd:"" help:"List the signing keys. Can run beside a server."`
		Rotate rotateKeysCmd `cmd:"" help:"Create new signing keys. With the embedded database, stop the server first."`
	} `cmd:"" help:"The keys that sign tokens."`
	Backup    backupCmd  `cmd:"" help:"Copy the embedded database to a new file. Can run beside a server."`
	Restore   restoreCmd `cmd:"" help:"Restore a backup into a data directory without a database."`
	MasterKey struct {
		Rotate rotateMasterKeyCmd `cmd:"" help:"Create a new master key. With the embedded database, stop the server first."`
	} `cmd:"" help:"The key that encrypts the secrets in the database."`
	Move   moveCmd `cmd:"" help:"Copy everything to another database: from the embedded one to PostgreSQL, or back. Stop the server first."`
	Import struct {
		Users importUsersCmd `cmd:"" help:"Import users with their password hashes from a file into a running server. Resumes after an interruption."`
	} `cmd:"" help:"Import data of another system into a running server."`
	IDP struct {
		Check checkIDPCmd `cmd:"" help:"Check an identity provider through a running server: fetch everything that its configuration names, and report every problem with a hint."`
	} `cmd:"" name:"idp" help:"Identity providers that people sign in through."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// dataFlags say where the data is. Every command that touches it has them.
type dataFlags struct {
	DataDir       string `help:"Directory of the embedded database, keys and first-admin.json. Default: ${default}." default:"./signet-data" placeholder:"DIR"`
	Database      string `help:"postgres://… to use PostgreSQL instead." placeholder:"URL"`
	MasterKeyFile string `help:"File with the master key. All nodes of a database use the same key." placeholder:"FILE"`
	LogLevel      string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
	LogFormat     string `help:"text or json." enum:"text,json" default:"text"`
}

func (f dataFlags) config() server.Config {
	return server.Config{DataDir: f.DataDir, Database: f.Database, MasterKeyFile: f.MasterKeyFile, MasterKey: os.Getenv("SIGNET_MASTER_KEY")}
}

func (f dataFlags) logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // kong has checked it
	options := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(stderr, options))
	}
	return slog.New(slog.NewTextHandler(stderr, options))
}

type startCmd struct {
	dataFlags
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

	Console bool `help:"Serve the web console under /console/. --console=false switches it off. Default: on." default:"true"`

	DatabaseWait time.Duration `help:"How long a start waits for a PostgreSQL database that is away. Default: ${default}." default:"1m" placeholder:"TIME"`

	ShutdownDelay time.Duration `help:"How long a server that is told to stop still answers requests, but says that it is not ready, so that proxies send them elsewhere. Default: ${default}." default:"0s" placeholder:"TIME"`

	VerifyEvery time.Duration `help:"How often the server verifies the log, slowly, beside its requests; 0: never. Default: ${default}." default:"24h" placeholder:"TIME"`

	BackupDirectory string        `help:"Directory for scheduled backups of the embedded database. Default: none are made." placeholder:"DIR"`
	BackupEvery     time.Duration `help:"How often a backup is made. Default: 24h." placeholder:"TIME"`
	BackupKeep      int           `help:"How many scheduled backups are kept. Default: 7." placeholder:"NUMBER"`
	BackupMaxAge    time.Duration `help:"Delete scheduled backups that are older, but for the last one. Default: however old." placeholder:"TIME"`

	ZitadelV1 bool `name:"zitadel-v1" env:"SIGNET_ZITADEL_V1" help:"Serve the five core operations under their names in version 1 of ZITADEL's API, too."`

	WebhookLease time.Duration `help:"How long a dead node keeps its lease on webhooks. Default: ${default}." default:"30s" placeholder:"TIME"`
	WebhookRetry time.Duration `help:"Time before the first retry of a failed webhook event. Later pauses grow from it. Default: ${default}." default:"5s" placeholder:"TIME"`

	StartsPerMinute int `help:"How many sign-ins, devices, resets and sign-outs one network may start per minute. Default: ${default}." default:"600" placeholder:"NUMBER"`

	LimitCaller       string `help:"Requests that one caller may send, such as 100/s, 6000/m or off. Default: ${default}." default:"off" placeholder:"RATE"`
	LimitOrganization string `help:"Requests that all callers of one organization may send. Default: ${default}." default:"off" placeholder:"RATE"`
	LimitNetwork      string `help:"Requests that one network may send. Default: ${default}." default:"off" placeholder:"RATE"`
	LimitPublic       string `help:"Requests that one network may send to public paths, such as the pages of signing in. Default: ${default}." default:"12000/m" placeholder:"RATE"`

	EmailsPerOrganization bool `name:"emails-per-organization" help:"Find people by e-mail address only in the organization that the sign-in is for, not in the whole installation."`

	TraceEndpoint    string  `help:"Collector that traces are sent to, by OTLP over HTTP: http://localhost:4318. Default: no traces." placeholder:"URL"`
	TraceSample      float64 `help:"Share of requests that are traced, from 0 to 1. Default: ${default}." default:"0.01" placeholder:"RATIO"`
	TraceHeadersFile string  `help:"File with the headers that the collector wants, one per line: authorization: Bearer …" placeholder:"FILE"`

	SMTPURL          string `name:"smtp-url" help:"Mail server: smtps://user@host:465, or smtp://host:587 (STARTTLS). Default: no mail is sent." placeholder:"URL"`
	SMTPFrom         string `name:"smtp-from" help:"Sender of mails, such as Signet <no-reply@id.example.org>." placeholder:"ADDRESS"`
	SMTPPasswordFile string `name:"smtp-password-file" help:"File with the password for the mail server." placeholder:"FILE"`
}

// serverConfig is everything that a server is told by its flags.
func (c *startCmd) serverConfig() server.Config {
	config := c.config()
	config.Listen, config.ExternalURL, config.InsecureURL, config.DomainSuffix = c.Listen, c.ExternalURL, c.InsecureURL, c.DomainSuffix
	config.FirstAdminFile, config.TLSCert, config.TLSKey = c.FirstAdminFile, c.TLSCert, c.TLSKey
	config.TrustedProxies, config.CORSOrigins = c.TrustedProxies, c.CORSOrigins
	config.MetricsListen, config.Profiling, config.OutboundAllow, config.Development = c.MetricsListen, c.Profiling, c.OutboundAllow, c.Development
	config.WebhookLease, config.WebhookRetry, config.StartsPerMinute = c.WebhookLease, c.WebhookRetry, c.StartsPerMinute
	config.LimitCaller, config.LimitOrganization, config.LimitNetwork, config.LimitPublic = c.LimitCaller, c.LimitOrganization, c.LimitNetwork, c.LimitPublic
	config.ZitadelV1, config.EmailsPerOrganization, config.Version = c.ZitadelV1, c.EmailsPerOrganization, version
	config.NoConsole, config.DatabaseWait, config.ShutdownDelay = !c.Console, c.DatabaseWait, c.ShutdownDelay
	config.SMTPURL, config.SMTPFrom, config.SMTPPasswordFile = c.SMTPURL, c.SMTPFrom, c.SMTPPasswordFile
	config.Traces = otlp.Settings{Endpoint: c.TraceEndpoint, Sample: c.TraceSample, HeadersFile: c.TraceHeadersFile}
	config.BackupDirectory, config.BackupEvery, config.BackupKeep, config.BackupMaxAge = c.BackupDirectory, c.BackupEvery, c.BackupKeep, c.BackupMaxAge
	config.VerifyEvery = c.VerifyEvery
	return config
}

func (c *startCmd) Run(ctx context.Context) error {
	began := time.Now()
	tuneMemory()
	if !c.Profiling {
		runtime.MemProfileRate = 0 // nobody will ask where memory was taken: no allocation has to note it
	}
	config := c.serverConfig()
	log := c.logger()
	var err error
	if config.Listener, config.MetricsListener, err = passedSockets(); err != nil {
		return err
	}
	s, err := server.Open(ctx, config, log)
	if err != nil && ctx.Err() != nil {
		log.Info("stopped before it was ready")
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Serve(ctx, func() {
		tellSystemd(ctx, log, s.Addr(), config)
		ready := []any{"url", s.URL(), "listen", s.Addr().String()}
		if console := s.ConsoleURL(); console != "" {
			ready = append(ready, "console", console)
		}
		if metrics := s.MetricsAddr(); metrics != nil {
			ready = append(ready, "metrics", metrics.String())
		}
		log.Info("ready", append(ready, "took", time.Since(began).Round(time.Millisecond).String(), "version", version)...)
		if s.FirstAdmin != nil {
			log.Info("first start: the administrator's password and a token are in " + s.FirstAdminPath)
			greet(s)
			go releaseMemory()
		}
	})
}

// greet shows the first administrator to a person at a terminal, once.
func greet(s *server.Server) {
	if !isatty.IsTerminal(os.Stdout.Fd()) { // /dev/null is a character device too, and no terminal
		return
	}
	f := s.FirstAdmin
	fmt.Fprintf(stdout, "\nSignet is ready: sign in at %s\n\n  login name  %s\n  password    %s\n  token       %s (90 days)\n\nThis is shown once. It is also in %s\n\n",
		cmp.Or(s.ConsoleURL(), f.URL), f.LoginName, f.Password, f.Token, s.FirstAdminPath)
}

type rebuildCmd struct {
	dataFlags
	Check bool `help:"Only check: exit with 0 if the state matches the log, else with 1. Can run beside a server."`
}

// errDifferent makes a check exit with 1 after it has said why.
var errDifferent = errors.New("the state does not match the log: stop the server, keep a copy of the data, and run signet rebuild")

func (c *rebuildCmd) Run(ctx context.Context) error {
	return server.Maintain(ctx, c.config(), c.logger(), c.Check, func(ctx context.Context, st *store.Store) error {
		run := st.Rebuild
		if c.Check {
			run = st.RebuildCheck
		}
		report, err := run(ctx)
		if engine.IsDamage(err) && !c.Check {
			return fmt.Errorf("%w: a rebuild does not repair this: keep a copy of the data directory, and restore the last backup", err)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%d events of %d objects\n", report.Events, report.Objects)
		for _, d := range report.Differences {
			fmt.Fprintln(stdout, progress.Line(d))
		}
		if len(report.Differences) > 0 {
			return errDifferent
		}
		if c.Check {
			return checkFile(ctx, st)
		}
		return nil
	})
}

type recoverCmd struct{ dataFlags }

func (c *recoverCmd) Run(ctx context.Context) error {
	return server.Maintain(ctx, c.config(), c.logger(), false, func(ctx context.Context, st *store.Store) error {
		r, err := setup.Setup{Store: st, Hasher: secret.NewHasher(0, 0)}.Recover(ctx)
		if r.Token != "" {
			fmt.Fprintf(stdout, "user    %s\ntoken   %s\nexpires %s\n", r.UserID, r.Token, r.Expires.Format(time.RFC3339))
			fmt.Fprintf(stderr, afterRecovery, r.UserID)
		}
		return err
	})
}

// afterRecovery is for people; what programs read is printed apart from it.
const afterRecovery = `
This is a new owner of the installation. What to do now:
  1. Start the server with signet start.
  2. Use the token to repair what is broken. To give an administrator a new password:
     curl -X POST URL/v1/users/USER/password -H 'authorization: Bearer TOKEN' \
       -H 'content-type: application/json' -d '{"password":"…"}'
  3. Remove this owner. The next signet admin recover does that, too:
     curl -X DELETE URL/v1/users/%s -H 'authorization: Bearer TOKEN'
`

type listKeysCmd struct{ dataFlags }

func (c *listKeysCmd) Run(ctx context.Context) error {
	return server.MaintainKeys(ctx, c.config(), c.logger(), true, showKeys)
}

// showKeys prints a line for every key.
func showKeys(ctx context.Context, keys *signing.Keys) error {
	all, _, err := keys.ListByOperator(ctx)
	if err != nil {
		return err
	}
	now := event.Micros(time.Now())
	date := func(micros int64) string { return event.Time(micros).Format(time.RFC3339) }
	out := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "key\talgorithm\tstate\tmade\tsigns from\tpublished until")
	for _, k := range all {
		state, until := "published", "-"
		switch signs := signing.Signs(all, k.Algorithm, now); {
		case !k.Published(now):
			state = "over"
		case signs != nil && signs.ID == k.ID:
			state = "signs"
		case k.SignsFrom > now:
			state = "waits"
		}
		if k.Until != 0 {
			until = date(k.Until)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Algorithm, state, date(k.Made), date(k.SignsFrom), until)
	}
	return out.Flush()
}

type rotateKeysCmd struct {
	dataFlags
	Now bool `help:"For keys that may have leaked: the new keys sign after a few seconds, and everything that the old keys signed becomes invalid."`
}

func (c *rotateKeysCmd) Run(ctx context.Context) error {
	return server.MaintainKeys(ctx, c.config(), c.logger(), false, func(ctx context.Context, keys *signing.Keys) error {
		if _, err := keys.RotateByOperator(ctx, c.Now); err != nil {
			return err
		}
		return showKeys(ctx, keys)
	})
}

type versionCmd struct{}

func (versionCmd) Run() error {
	built := commit
	if info, ok := debug.ReadBuildInfo(); ok && built == "" {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				built = setting.Value
			}
		}
	}
	if built != "" {
		built = " " + built
	}
	fmt.Fprintf(stdout, "signet %s%s %s %s/%s\n", version, built, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

func main() { os.Exit(run(os.Args[1:])) }

// Exit codes.
const (
	exitFailed = 1 // also of a check that found a difference
	exitUsage  = 2
)

func run(args []string) int {
	// Libraries write to the default logger what the other side sent. We log what operators need ourselves.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx, cancel := untilSignal()
	defer cancel()
	parsed := parseStart(args, os.Environ())
	if parsed == nil {
		parser, err := newParser(&cli{})
		if err != nil {
			return complain(err, exitFailed)
		}
		if len(args) == 0 {
			args = []string{"--help"}
		}
		warnAboutVariables(stderr, parser.Model, os.Environ())
		if parsed, err = parser.Parse(args); err != nil {
			return complain(explainUsage(err), exitUsage)
		}
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	err := parsed.Run()
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	if err != nil {
		return complain(stopped(ctx, err), exitFailed)
	}
	return 0
}

// starting is what of cli a start needs.
type starting struct {
	Config configFile `help:"YAML file with the same settings: one key per flag, without the leading dashes." placeholder:"FILE"`
	Start  startCmd   `cmd:"" help:"Run the server. The first start sets everything up."`
}

// parseStart reads the command line of a start, without the flags of all other commands, which would take a tenth of
// the time until the server is ready. Nil: there is something to say that only a parser with all commands can.
func parseStart(args, environment []string) *kong.Context {
	if len(args) == 0 || args[0] != "start" || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-h") || strings.HasPrefix(a, "--h") }) {
		return nil
	}
	parser, err := newParser(&starting{})
	if err != nil || len(unknownVariables(parser.Model, environment)) > 0 {
		return nil
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return nil
	}
	return parsed
}

// untilSignal gives a context that the first signal ends. From the moment on at which anybody can learn of that, a
// second signal ends the program at once.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// explainUsage adds to what is wrong with a command line where to read what would be right.
func explainUsage(err error) error {
	command := "signet"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		if selected := parse.Context.Selected(); selected != nil {
			command, _, _ = strings.Cut(selected.FullPath(), " <")
		}
	}
	said := err.Error()
	if flag, rest, found := strings.Cut(said, ": expected "); found && strings.HasSuffix(rest, "(<EOL>)") {
		said = flag + " needs a value" // the parser would speak of the end of its input
	}
	if strings.Contains(said, "--help") {
		return errors.New(said)
	}
	return fmt.Errorf("%s (see %s --help)", said, command)
}

// stopped puts an error that a signal has brought about into words.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("stopped before it was done")
	}
	return err
}

// complain says in one line what went wrong.
func complain(err error, code int) int {
	said := err.Error()
	if engine.IsFull(err) {
		said = strings.ReplaceAll(said, "database or disk is full (13)", "the disk is full") + ": free some space on the disk (df -h shows which one it is), and run the command again"
	}
	fmt.Fprintln(stderr, "signet: "+oneLine(said))
	return code
}

var (
	breaks   = regexp.MustCompile(`\s*\n\s*`)
	password = regexp.MustCompile(`://[^\s:@/]*:\S*@`)
	named    = regexp.MustCompile(`(?i)(password=)('[^']*'|[^\s&]*)`)
)

// oneLine takes the breaks out of a message, and passwords out of addresses in it: parts of a mistyped command line
// come back in messages.
func oneLine(message string) string {
	message = progress.Line(breaks.ReplaceAllString(strings.TrimSpace(message), " "))
	return named.ReplaceAllString(password.ReplaceAllString(message, "://…@"), "$1…")
}
