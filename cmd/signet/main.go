// Command signet is the Signet server and its operator's tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"

	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/secret"
	"github.com/signet-idm/signet/internal/server"
	"github.com/signet-idm/signet/internal/setup"
	"github.com/signet-idm/signet/internal/signing"
	"github.com/signet-idm/signet/internal/store"
)

// version is set by the release build.
var version = "development"

type cli struct {
	Config configFile `help:"YAML file with the same settings: a key per flag, without the dashes in front." placeholder:"FILE"`

	Start   startCmd   `cmd:"" help:"Run the server. The first start sets everything up."`
	Rebuild rebuildCmd `cmd:"" help:"Fold the state tables anew from the log, or check that they are what it says."`
	Verify  verifyCmd  `cmd:"" help:"Check that the log is as it was written. May run beside a server."`
	Admin   struct {
		Recover recoverCmd `cmd:"" help:"Make a new administrator token for whoever holds the data. The server must be stopped."`
	} `cmd:"" help:"For whoever holds the data directory or the database."`
	Keys struct {
		List   listKeysCmd   `cmd:"" help:"Show the keys that tokens are signed with. May run beside a server."`
		Rotate rotateKeysCmd `cmd:"" help:"Make new keys that tokens are signed with. On the embedded database the server must be stopped."`
	} `cmd:"" help:"The keys that tokens are signed with."`
	Backup    backupCmd  `cmd:"" help:"Copy the embedded database into a new file. May run beside a server."`
	Restore   restoreCmd `cmd:"" help:"Make a backup the database of a data directory that has none."`
	MasterKey struct {
		Rotate rotateMasterKeyCmd `cmd:"" help:"Make a new master key. On the embedded database the server must be stopped."`
	} `cmd:"" help:"The key that everything in the database is sealed with."`
	Move   moveCmd `cmd:"" help:"Carry everything to another database: from the embedded one to PostgreSQL, or back. The server must be stopped."`
	Import struct {
		Users importUsersCmd `cmd:"" help:"Bring users from a file into a running server, with the hashes of their passwords. Goes on where it was when it is cut off."`
	} `cmd:"" help:"Bring what another system has into a running server."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// dataFlags say where the data is. Every command that touches it has them.
type dataFlags struct {
	DataDir       string `help:"Directory of the embedded database, keys and first-admin.json. ${default} when left out." default:"./signet-data" placeholder:"DIR"`
	Database      string `help:"postgres://… to keep the data in PostgreSQL instead." placeholder:"URL"`
	MasterKeyFile string `help:"File with the master key. Nodes that share a database share it." placeholder:"FILE"`
	LogLevel      string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
	LogFormat     string `help:"text or json." enum:"text,json" default:"text"`
}

func (f dataFlags) config() server.Config {
	return server.Config{DataDir: f.DataDir, Database: f.Database, MasterKeyFile: f.MasterKeyFile, MasterKey: os.Getenv("SIGNET_MASTER_KEY")}
}

func (f dataFlags) logger() *slog.Logger {
	// Some libraries speak to the default logger, and repeat there what callers send. What is to be said we say ourselves.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // kong has checked it
	options := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

type startCmd struct {
	dataFlags
	Listen         string   `help:"Address to listen on. ${default} when left out." default:"localhost:8080" placeholder:"HOST:PORT"`
	ExternalURL    string   `name:"external-url" help:"URL under which clients reach the server. Made from --listen when left out." placeholder:"URL"`
	DomainSuffix   string   `help:"What generated domains end in. The external host name when left out." placeholder:"DOMAIN"`
	FirstAdminFile string   `help:"Where the first start writes its administrator. In the data directory when left out." placeholder:"FILE"`
	TLSCert        string   `name:"tls-cert" help:"Certificate chain (PEM)." placeholder:"FILE"`
	TLSKey         string   `name:"tls-key" help:"Private key (PEM)." placeholder:"FILE"`
	TrustedProxies []string `help:"Addresses or networks of proxies whose X-Forwarded-For counts." placeholder:"NET"`
	CORSOrigins    []string `name:"cors-origins" help:"Origins of browser applications that may call the API." placeholder:"ORIGIN"`
	MetricsListen  string   `help:"Address to serve Prometheus metrics on. Off when left out." placeholder:"HOST:PORT"`
	OutboundAllow  []string `help:"Addresses or networks that may be called although they are not public, and without TLS." placeholder:"NET"`
	Development    bool     `help:"Write the codes that people ask for to the log, and call addresses on this machine; only for an external URL on this machine."`

	WebhookLease time.Duration `help:"How long a node that has died keeps others from its webhooks. ${default} when left out." default:"30s" placeholder:"TIME"`
	WebhookRetry time.Duration `help:"How long an event that a webhook did not take waits for its second try; the other pauses grow from it. ${default} when left out." default:"5s" placeholder:"TIME"`

	StartsPerMinute int `help:"How many sign-ins, devices, resets and sign-outs one network can begin within a minute. ${default} when left out." default:"600" placeholder:"NUMBER"`

	SMTPURL          string `name:"smtp-url" help:"Mail server: smtps://user@host:465, or smtp://host:587 (STARTTLS). No mail is sent when left out." placeholder:"URL"`
	SMTPFrom         string `name:"smtp-from" help:"Sender of mails, such as Signet <no-reply@id.example.org>." placeholder:"ADDRESS"`
	SMTPPasswordFile string `name:"smtp-password-file" help:"File with the password for the mail server." placeholder:"FILE"`
}

func (c *startCmd) Run(ctx context.Context) error {
	began := time.Now()
	tuneMemory()
	config := c.config()
	config.Listen, config.ExternalURL, config.DomainSuffix = c.Listen, c.ExternalURL, c.DomainSuffix
	config.FirstAdminFile, config.TLSCert, config.TLSKey = c.FirstAdminFile, c.TLSCert, c.TLSKey
	config.TrustedProxies, config.CORSOrigins = c.TrustedProxies, c.CORSOrigins
	config.MetricsListen, config.OutboundAllow, config.Development = c.MetricsListen, c.OutboundAllow, c.Development
	config.WebhookLease, config.WebhookRetry, config.StartsPerMinute = c.WebhookLease, c.WebhookRetry, c.StartsPerMinute
	config.SMTPURL, config.SMTPFrom, config.SMTPPasswordFile = c.SMTPURL, c.SMTPFrom, c.SMTPPasswordFile
	log := c.logger()
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
		defer releaseStart()
		ready := []any{"url", s.URL(), "listen", s.Addr().String()}
		if metrics := s.MetricsAddr(); metrics != nil {
			ready = append(ready, "metrics", metrics.String())
		}
		log.Info("ready", append(ready, "took", time.Since(began).Round(time.Millisecond).String(), "version", version)...)
		if s.FirstAdmin != nil {
			log.Info("first start: the administrator's password and a token are in " + s.FirstAdminPath)
			greet(s)
		}
	})
}

// tuneMemory fits the garbage collector to a server whose live data is a few megabytes: it collects when there is
// something to gain, and the limit makes it collect in time when much is in use. GOGC and GOMEMLIMIT win.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(128 << 20)
	}
}

// releaseStart gives back the memory that only the start has needed.
func releaseStart() {
	debug.FreeOSMemory()
	releaseProgram()
}

// greet shows the first administrator to a person at a terminal, once.
func greet(s *server.Server) {
	if !isatty.IsTerminal(os.Stdout.Fd()) { // /dev/null is a character device too, and no terminal
		return
	}
	f := s.FirstAdmin
	fmt.Printf("\nSignet is ready: sign in at %s\n\n  login name  %s\n  password    %s\n  token       %s (90 days)\n\nThis is shown once. It is also in %s\n\n",
		f.URL, f.LoginName, f.Password, f.Token, s.FirstAdminPath)
}

type rebuildCmd struct {
	dataFlags
	Check bool `help:"Change nothing: exit with 0 when the state is what the log says, with 1 when not. May run beside a server."`
}

// errDifferent makes a check exit with 1 after it has said why.
var errDifferent = errors.New("the state is not what the log says")

func (c *rebuildCmd) Run(ctx context.Context) error {
	return server.Maintain(ctx, c.config(), c.logger(), c.Check, func(ctx context.Context, st *store.Store) error {
		run := st.Rebuild
		if c.Check {
			run = st.RebuildCheck
		}
		report, err := run(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%d events of %d objects\n", report.Events, report.Objects)
		for _, d := range report.Differences {
			fmt.Println(d)
		}
		if len(report.Differences) > 0 {
			return errDifferent
		}
		return nil
	})
}

type recoverCmd struct{ dataFlags }

func (c *recoverCmd) Run(ctx context.Context) error {
	return server.Maintain(ctx, c.config(), c.logger(), false, func(ctx context.Context, st *store.Store) error {
		r, err := setup.Setup{Store: st, Hasher: secret.NewHasher(0, 0)}.Recover(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("user    %s\ntoken   %s\nexpires %s\n", r.UserID, r.Token, r.Expires.Format(time.RFC3339))
		return nil
	})
}

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
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
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
	Now bool `help:"For keys that may have leaked: the new ones sign in a few seconds, and nothing that was signed before counts from then on."`
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
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = " " + setting.Value
			}
		}
	}
	fmt.Printf("signet %s%s %s %s/%s\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

func main() { os.Exit(run(os.Args[1:])) }

// Exit codes.
const (
	exitFailed = 1 // also of a check that found a difference
	exitUsage  = 2
)

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal does not wait for anything
	parser, err := newParser(&cli{})
	if err != nil {
		return complain(err, exitFailed)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return complain(explainUsage(err), exitUsage)
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(); err != nil {
		return complain(stopped(ctx, err), exitFailed)
	}
	return 0
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
	fmt.Fprintln(os.Stderr, "signet: "+oneLine(err.Error()))
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
	message = breaks.ReplaceAllString(strings.TrimSpace(message), " ")
	return named.ReplaceAllString(password.ReplaceAllString(message, "://…@"), "$1…")
}
