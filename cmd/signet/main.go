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

// dataFlags say where the data is, and how to log. Every command that touches the data has them.
type dataFlags struct {
	server.Data
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
	LogFormat string `help:"text or json." enum:"text,json" default:"text"`
}

func (f dataFlags) data() server.Data {
	data := f.Data
	data.MasterKey = os.Getenv("SIGNET_MASTER_KEY")
	return data
}

// config is that of a command that only needs the data.
func (f dataFlags) config() server.Config { return server.Config{Data: f.data()} }

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
	server.Config
}

// serverConfig is everything that a server is told by its flags.
func (c *startCmd) serverConfig() server.Config {
	config := c.Config
	config.Data, config.Version = c.data(), version
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
		log.Info("ready", append(ready, "took", time.Since(began).Round(time.Millisecond).String(),
			"version", version)...)
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
			fmt.Fprintf(stdout, "user    %s\ntoken   %s\nexpires %s\n", r.UserID, r.Token,
				r.Expires.Format(time.RFC3339))
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
	if len(args) == 0 || args[0] != "start" ||
		slices.ContainsFunc(args,
			func(a string) bool { return strings.HasPrefix(a, "-h") || strings.HasPrefix(a, "--h") }) {
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
		said = strings.ReplaceAll(said, "database or disk is full (13)",
			"the disk is full") +
			": free some space on the disk (df -h shows which one it is), and run the command again"
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
