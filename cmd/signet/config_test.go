package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/signet-idm/signet/internal/eventlog/store/proof"
	"github.com/signet-idm/signet/internal/limit/ratelimit"
)

// source says the same setting in one of the ways an operator can. n tells values apart.
type source struct {
	name string
	n    int
}

// values are what a flag can be set to, as text and as it arrives.
func values(flag *kong.Flag, n int) (texts []string, want any) {
	switch {
	case flag.IsBool():
		on := n%2 == 0
		if flag.Target.Kind() == reflect.Pointer {
			return []string{fmt.Sprint(on)}, &on
		}
		return []string{fmt.Sprint(on)}, on
	case flag.IsSlice():
		list := []string{fmt.Sprint("one", n), fmt.Sprint("two", n)}
		return list, list
	case flag.Enum != "":
		allowed := flag.EnumSlice()
		return []string{allowed[n%len(allowed)]}, allowed[n%len(allowed)]
	}
	switch flag.Target.Interface().(type) {
	case time.Duration:
		return []string{fmt.Sprint(n, "m")}, time.Duration(n) * time.Minute
	case *proof.Mark:
		mark := &proof.Mark{Position: int64(n), Digest: [32]byte{byte(n)}}
		return []string{mark.String()}, mark
	case float64:
		return []string{fmt.Sprint("0.", n)}, float64(n) / 10
	case int:
		return []string{fmt.Sprint(n)}, n
	}
	return []string{fmt.Sprint("value", n)}, fmt.Sprint("value", n)
}

func flagsOf(t *testing.T, command string) []*kong.Flag {
	t.Helper()
	parser, err := newParser(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Leaves(true) {
		if path, _, _ := strings.Cut(node.Path(), " <"); path == "signet "+command || path == command {
			var flags []*kong.Flag
			for _, group := range node.AllFlags(true) {
				for _, flag := range group {
					if flag.Name != "help" && flag.Name != "config" {
						flags = append(flags, flag)
					}
				}
			}
			return flags
		}
	}
	t.Fatalf("there is no command %s", command)
	return nil
}

func TestEverySettingComesFromFlagEnvironmentAndFile(t *testing.T) {
	fromFile, fromEnv, fromFlag := source{"file", 1}, source{"environment", 2}, source{"flag", 3}
	for command, required := range map[string][]string{
		"start":             nil,
		"rebuild":           nil,
		"verify":            nil,
		"admin recover":     nil,
		"keys list":         nil,
		"keys rotate":       nil,
		"backup":            {"backup.db"},
		"restore":           {"backup.db"},
		"master-key rotate": nil,
		"import users":      {"users.csv"},
		"idp check":         {"idp_1"},
		"move":              nil,
	} {
		for _, flag := range flagsOf(t, command) {
			for _, sources := range [][]source{{fromFile}, {fromEnv}, {fromFlag}, {fromFile, fromEnv},
				{fromFile, fromFlag}, {fromEnv, fromFlag}, {fromFile, fromEnv, fromFlag}} {
				t.Run(fmt.Sprint(command, " ", flag.Name, " ", sources), func(t *testing.T) {
					args := append(strings.Fields(command), required...)
					if command == "move" && flag.Name != "to" {
						args = append(args, "--to", "elsewhere")
					}
					for _, s := range sources {
						texts, _ := values(flag, s.n)
						switch s {
						case fromFile:
							text := texts[0]
							if flag.IsSlice() {
								text = "[" + strings.Join(texts, ", ") + "]"
							}
							path := filepath.Join(t.TempDir(), "signet.yaml")
							if err := os.WriteFile(path, []byte(flag.Name+": "+text+"\n"), 0o600); err != nil {
								t.Fatal(err)
							}
							args = append(args, "--config", path)
						case fromEnv:
							t.Setenv("SIGNET_"+strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_")),
								strings.Join(texts, ","))
						case fromFlag:
							args = append(args, "--"+flag.Name+"="+strings.Join(texts, ","))
						}
					}
					_, want := values(flag, sources[len(sources)-1].n)
					if got := parse(t, flag.Name, args...); !reflect.DeepEqual(got, want) {
						t.Errorf("it is %v, want %v", got, want)
					}
				})
			}
		}
	}
}

// parse gives the value of a flag after parsing.
func parse(t *testing.T, name string, args ...string) any {
	t.Helper()
	parser, err := newParser(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	value := valueOf(t, parsed, name)
	if args[0] == "start" {
		short := parseStart(args, nil)
		if short == nil && !slices.Contains(args, "--config") {
			t.Fatal("the parser of starts does not know it")
		}
		if short != nil && !reflect.DeepEqual(valueOf(t, short, name), value) {
			t.Errorf("a start gets %v", valueOf(t, short, name))
		}
	}
	return value
}

func valueOf(t *testing.T, parsed *kong.Context, name string) any {
	t.Helper()
	for _, flag := range parsed.Flags() {
		if flag.Name == name {
			return parsed.FlagValue(flag)
		}
	}
	t.Fatalf("there is no flag %s", name)
	return nil
}

// TestTheParserOfStarts leaves to the other one what it cannot say.
func TestTheParserOfStarts(t *testing.T) {
	all := reflect.TypeFor[cli]()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[starting]()) {
		if same, _ := all.FieldByName(field.Name); same.Tag != field.Tag || same.Type != field.Type {
			t.Errorf("%s differs: %s", field.Name, field.Tag)
		}
	}
	foreign := filepath.Join(t.TempDir(), "signet.yaml")
	if err := os.WriteFile(foreign, []byte("to: postgres://x\n"), 0o600); err != nil { // a setting of signet move
		t.Fatal(err)
	}
	for line, short := range map[string]bool{
		"start":                     true,
		"start --listen :1":         true,
		"":                          false,
		"version":                   false,
		"start now":                 false,
		"start --listn :1":          false,
		"start --help":              false,
		"start -h":                  false,
		"--help start":              false,
		"start --config " + foreign: false,
		"start --log-level loud":    false,
	} {
		if got := parseStart(strings.Fields(line), nil) != nil; got != short {
			t.Errorf("signet %s: %v", line, got)
		}
	}
	if parseStart([]string{"start"}, []string{"SIGNET_LOG_LEVEL=debug", "SIGNET_TO=postgres://x"}) != nil {
		t.Error("nobody would look whether there is a command with such a variable")
	}
}

func TestTheManualHasEveryCommandAndEverySettingOfTheServer(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations/README.md")
	if err != nil {
		t.Fatal(err)
	}
	manual := string(text)
	for _, flag := range flagsOf(t, "start") {
		if !strings.Contains(manual, "`--"+flag.Name+"`") {
			t.Errorf("--%s is not there", flag.Name)
		}
	}
	_, commands, _ := strings.Cut(manual, "\n## Commands\n")
	parser, err := newParser(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Leaves(true) {
		command, _, _ := strings.Cut(node.FullPath(), " <")
		if command != "signet start" && !strings.Contains(commands, "`"+command) {
			t.Errorf("%s is not there", command)
		}
	}
}

func TestUsageErrorsSayWhereToRead(t *testing.T) {
	for line, want := range map[string]string{
		"begin":              "unexpected argument begin (see signet --help)",
		"start now":          "unexpected argument now (see signet start --help)",
		"keys":               `expected one of "list", "rotate" (see signet keys --help)`,
		"import users":       `expected "<file>" (see signet import users --help)`,
		"backup a b":         "unexpected argument b (see signet backup --help)",
		"keys list --config": "--config needs a value (see signet keys list --help)",
	} {
		parser, err := newParser(&cli{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = parser.Parse(strings.Fields(line)); err == nil || explainUsage(err).Error() != want {
			t.Errorf("signet %s: %v, want %s", line, explainUsage(err), want)
		}
	}
}

// TestZeroIsTheDefault: a server that is opened without flags goes by the same numbers, unless Config says otherwise.
func TestZeroIsTheDefault(t *testing.T) {
	for name, zero := range map[string]any{"starts-per-minute": ratelimit.DefaultPerNetwork,
		"limit-public": ratelimit.DefaultPublic.String(), "console": new(true)} {
		if got := parse(t, name, "start"); !reflect.DeepEqual(got, zero) {
			t.Errorf("--%s is %v by default, and the package has %v", name, got, zero)
		}
	}
}

func TestDefaults(t *testing.T) {
	for name, want := range map[string]any{
		"listen":          "localhost:8080",
		"data-dir":        "./signet-data",
		"database":        "",
		"log-level":       "info",
		"log-format":      "text",
		"metrics-listen":  "",
		"development":     false,
		"trusted-proxies": []string(nil),
	} {
		if got := parse(t, name, "start"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v by default, want %v", name, got, want)
		}
	}
}

func TestFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		flag string
		want any
	}{
		"an empty file":                   {"", "listen", "localhost:8080"},
		"a comment":                       {"# listen: x\n", "listen", "localhost:8080"},
		"a setting without a value":       {"listen:\n", "listen", "localhost:8080"},
		"a number is text":                {"domain-suffix: 010\n", "domain-suffix", "010"},
		"quotes":                          {"database: \"postgres://a:b#c@d/e\"\n", "database", "postgres://a:b#c@d/e"},
		"a list on lines":                 {"cors-origins:\n- a\n- b\n", "cors-origins", []string{"a", "b"}},
		"a list of one, plainly":          {"cors-origins: a\n", "cors-origins", []string{"a"}},
		"a list with commas":              {"cors-origins: a,b\n", "cors-origins", []string{"a", "b"}},
		"truth in the words of operators": {"development: yes\n", "development", true},
		"an alias":                        {"tls-cert: &a both.pem\ntls-key: *a\n", "tls-key", "both.pem"},
		"a setting of another command":    {"check: true\n", "listen", "localhost:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "signet.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := parse(t, c.flag, "start", "--config", path); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s is %v, want %v", c.flag, got, c.want)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"one\n\ttwo\n": "one two",
		"unexpected argument postgres://u:p@ss/w@host/db":                 "unexpected argument postgres://…@host/db",
		"a postgresql://:secret@host:1/db b":                              "a postgresql://…@host:1/db b",
		"unexpected argument postgres://h/db?user=u&password=s3cret&x=y":  "unexpected argument postgres://h/db?user=u&password=…&x=y",
		"unexpected argument host=h sslPassword='a b' user=u":             "unexpected argument host=h sslPassword=… user=u",
		"it must be a URL such as postgres://user@host:5432/name":         "it must be a URL such as postgres://user@host:5432/name",
		"https://id.example.org:8443/ is not user@example.org's: goodbye": "https://id.example.org:8443/ is not user@example.org's: goodbye",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestACommandThatIsStoppedSaysSo(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	canceled, broken := fmt.Errorf("reading events: %w", context.Canceled), errors.New("the disk is full")
	if got := stopped(ctx, canceled); got != canceled {
		t.Errorf("while nobody has stopped it: %v", got)
	}
	stop()
	if got := stopped(ctx, canceled); got.Error() != "stopped before it was done" {
		t.Errorf("once it was stopped: %v", got)
	}
	if got := stopped(ctx, broken); got != broken {
		t.Errorf("what else has happened: %v", got)
	}
}
