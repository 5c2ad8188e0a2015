package program

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFlagBeatsTheEnvironmentBeatsTheFile(t *testing.T) {
	s := embedded(t)
	file := writeFile(t, filepath.Join(t.TempDir(), "signet.yaml"), "external-url: https://file.example.org/\n", 0o600)
	env := []string{"SIGNET_EXTERNAL_URL=https://environment.example.org"}
	for _, c := range []struct {
		name  string
		env   []string
		extra []string
		url   string
	}{
		{"all", env, []string{"--config", file, "--external-url", "https://flag.example.org"},
			"https://flag.example.org"},
		{"environment and file", env, []string{"--config", file}, "https://environment.example.org"},
		{"file", nil, []string{"--config", file}, "https://file.example.org"},
		{"file named by the environment", []string{"SIGNET_CONFIG=" + file}, nil, "https://file.example.org"},
		{"file, and a variable set to nothing", []string{"SIGNET_EXTERNAL_URL=", "SIGNET_DEVELOPMENT="},
			[]string{"--config", file}, "https://file.example.org"},
		{"nothing", nil, nil, "http://localhost:"},
		{"cleartext that is insisted on", nil,
			[]string{"--external-url", "http://id.example.org:8085", "--insecure-external-url"},
			"http://id.example.org:8085"},
		{"cleartext on this machine", nil, []string{"--external-url", "http://127.0.0.2:8085"},
			"http://127.0.0.2:8085"},
	} {
		p := s.launch(t, c.env, c.extra...)
		if got := p.await(t, "ready").URL; !strings.HasPrefix(got, c.url) ||
			c.url != "http://localhost:" && got != c.url {
			t.Errorf("%s: the URL is %s, want %s", c.name, got, c.url)
		}
		p.stop(t)
	}
}

func TestTheConsoleIsOnUnlessASettingSaysOtherwise(t *testing.T) {
	s := embedded(t)
	file := writeFile(t, filepath.Join(t.TempDir(), "signet.yaml"), "console: false\n", 0o600)
	for _, c := range []struct {
		name  string
		env   []string
		extra []string
		want  int
	}{
		{"nothing", nil, nil, http.StatusOK},
		{"flag", nil, []string{"--console=false"}, http.StatusNotFound},
		{"environment", []string{"SIGNET_CONSOLE=false"}, nil, http.StatusNotFound},
		{"file", nil, []string{"--config", file}, http.StatusNotFound},
		{"flag and file", nil, []string{"--config", file, "--console"}, http.StatusOK},
	} {
		p := s.launch(t, c.env, c.extra...)
		ready := p.await(t, "ready")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ready.URL+"/console/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: the console answers %d", c.name, resp.StatusCode)
		}
		p.stop(t)
	}
}

func TestHelpListsEverySetting(t *testing.T) {
	t.Parallel()
	help := run(t, nil, "start", "--help").fine(t).stdout
	for _, name := range []string{"config", "listen", "external-url", "insecure-external-url", "data-dir", "database",
		"master-key-file", "domain-suffix", "first-admin-file",
		"tls-cert", "tls-key", "trusted-proxies", "cors-origins", "log-level", "log-format", "metrics-listen",
		"outbound-allow", "development", "webhook-lease", "database-wait", "shutdown-delay",
		"webhook-retry", "starts-per-minute", "limit-caller", "limit-organization", "limit-network", "limit-public",
		"console", "zitadel-v1", "smtp-url", "smtp-from", "smtp-password-file"} {
		if !strings.Contains(help, "--"+name) ||
			!strings.Contains(help, "($SIGNET_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))) {
			t.Errorf("the help does not speak of %s:\n%s", name, help)
		}
	}
	for _, name := range []string{"localhost:8080", "./signet-data"} {
		if !strings.Contains(help, name) {
			t.Errorf("the help does not say that %s is a default", name)
		}
	}
	help = run(t, nil, "--help").fine(t).stdout
	for _, command := range []string{"start", "rebuild", "verify", "admin recover", "keys list", "keys rotate",
		"import users", "idp check", "move", "backup", "restore", "master-key rotate", "version"} {
		if !strings.Contains(help, "\n  "+command) {
			t.Errorf("the help does not speak of %s:\n%s", command, help)
		}
	}
	if bare := run(t, nil).fine(t).stdout; bare != help {
		t.Errorf("without arguments it says:\n%s", bare)
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	const password = "opensesame"
	address := "postgres://signet:" + password + "@127.0.0.1:1/signet"
	key := newKey()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		name string
		args []string
		env  []string
		file string
		says string
	}{
		{name: "listen without a port", args: []string{"--listen", "localhost"},
			says: `--listen "localhost" must be an address such as localhost:8080`},
		{name: "listen on a port that cannot be", args: []string{"--listen", "localhost:70000"},
			says: `--listen "localhost:70000"`},
		{name: "listen without a value", args: []string{"--listen"},
			says: "--listen needs a value (see signet start --help)"},
		{name: "listen where somebody listens", args: []string{"--listen", taken.Addr().String()},
			says: "another program uses this address: stop it, or choose another address"},
		{name: "metrics on nothing", args: []string{"--metrics-listen", "here"}, says: `--metrics-listen "here"`},
		{name: "external URL of another scheme", args: []string{"--external-url", "ftp://id.example.org"},
			says: `--external-url "ftp://id.example.org" must be a URL such as https://id.example.org`},
		{name: "external URL with a path", args: []string{"--external-url", "https://id.example.org/signet"},
			says: "--external-url"},
		{name: "external URL without a scheme", args: []string{"--external-url", "id.example.org"},
			says: "--external-url"},
		{name: "external URL with a password",
			args: []string{"--external-url", "https://me:" + password + "@id.example.org"}, says: "--external-url"},
		{name: "external URL where no cookie is kept", args: []string{"--external-url", "http://id.example.org:8085"},
			says: "nobody could sign in at http://id.example.org:8085: browsers keep the cookies of signing in only for https"},
		{name: "external URL where no cookie is kept, made from --listen", args: []string{"--listen", "192.0.2.1:8085"},
			says: "add --insecure-external-url"},
		{name: "certificate alone", args: []string{"--tls-cert", "cert.pem"},
			says: "--tls-cert and --tls-key belong together"},
		{name: "private key alone", args: []string{"--tls-key", "key.pem"},
			says: "--tls-cert and --tls-key belong together"},
		{name: "certificate that is not there", args: []string{"--tls-cert", "cert.pem", "--tls-key", "key.pem"},
			says: "reading --tls-cert and --tls-key: open cert.pem"},
		{name: "development elsewhere", args: []string{"--development", "--external-url", "https://id.example.org"},
			says: "--development needs an external URL on this machine"},
		{name: "domain suffix with a space", args: []string{"--domain-suffix", "example org"},
			says: `--domain-suffix "example org"`},
		{name: "proxy", args: []string{"--trusted-proxies", "10.0.0.0/8,proxy"}, says: `--trusted-proxies "proxy"`},
		{name: "origin", args: []string{"--cors-origins", "https://app.example.org/path"},
			says: `--cors-origins "https://app.example.org/path"`},
		{name: "any origin", args: []string{"--cors-origins", "*"}, says: `--cors-origins "*"`},
		{name: "log level", args: []string{"--log-level", "loud"}, says: "--log-level must be one of"},
		{name: "log format", args: []string{"--log-format", "xml"}, says: "--log-format must be one of"},
		{name: "webhooks of a dead node for ever", args: []string{"--webhook-lease", "2h"},
			says: "--webhook-lease must be between 1s and 1h"},
		{name: "tries without a pause", args: []string{"--webhook-retry", "1ms"},
			says: "--webhook-retry must be between 100ms and 1m"},
		{name: "hardly any sign-ins", args: []string{"--starts-per-minute", "9"},
			says: "--starts-per-minute must be between 10 and 1000000"},
		{name: "a limit without a time", args: []string{"--limit-caller", "100"},
			says: `--limit-caller "100" must be a number of requests and a unit of time`},
		{name: "less than none", args: []string{"--starts-per-minute=-1"},
			says: "--starts-per-minute must be between 10 and 1000000"},
		{name: "a stop that never comes", args: []string{"--shutdown-delay", "6m"},
			says: "--shutdown-delay must be between 0s and 5m"},
		{name: "a wait for ever", args: []string{"--database-wait", "25h"},
			says: "--database-wait must be between 0s and 24h"},
		{name: "a time without a unit", args: []string{"--webhook-lease", "30"}, says: "--webhook-lease"},
		{name: "data directory without a name", args: []string{"--data-dir", ""}, says: "--data-dir is empty"},
		{name: "unknown flag", args: []string{"--liste", "localhost:1"}, says: "unknown flag --liste"},
		{name: "another database", args: []string{"--database", "mysql://signet:" + password + "@127.0.0.1/signet"},
			says: "--database must be a URL such as postgres://"},
		{name: "database by key and value", args: []string{"--database", "host=127.0.0.1 password=" + password},
			says: "--database must be a URL such as postgres://"},
		{name: "database address that cannot be read",
			args: []string{"--database", "postgres://signet:" + password + "@127.0.0.1:port/signet"},
			says: "the database address is not valid"},
		{name: "database that is not there", args: []string{"--database", address, "--database-wait", "0s"},
			says: "PostgreSQL at 127.0.0.1:1 does not answer"},
		{name: "database from the environment", env: []string{"SIGNET_DATABASE=" + address, "SIGNET_DATABASE_WAIT=0s"},
			says: "PostgreSQL at 127.0.0.1:1 does not answer"},
		{name: "database as an argument", args: []string{address},
			says: "unexpected argument postgres://…@127.0.0.1:1/signet (see signet start --help)"},
		{name: "database under a mistyped flag", args: []string{"--databse", address}, says: "unknown flag --databse"},
		{name: "key as the name of a file", args: []string{"--master-key-file", key},
			says: "takes the name of a file, not the key"},
		{name: "key under a flag", args: []string{"--master-key", key}, says: "unknown flag --master-key"},
		{name: "key that is none", env: []string{"SIGNET_MASTER_KEY=" + key[1:]},
			says: "SIGNET_MASTER_KEY: the master key must be"},
		{name: "unknown setting in the file", file: "listne: localhost:8080\n",
			says: `contains the unknown setting "listne"`},
		{name: "key in the file", file: "master-key: " + key + "\n", says: `contains the unknown setting "master-key"`},
		{name: "file in the file", file: "config: other.yaml\n", says: `contains the unknown setting "config"`},
		{name: "bad value in the file", file: "log-level: loud\n", says: "--log-level must be one of"},
		{name: "no truth in the file", file: "development: perhaps\n", says: "--development"},
		{name: "list for a plain value", file: "database: [\"" + address + "\"]\n",
			says: "database in the configuration file must be one plain value"},
		{name: "object for a list", file: "trusted-proxies: {a: b}\n",
			says: "trusted-proxies in the configuration file"},
		{name: "setting twice", file: "log-level: info\nlog-level: warn\n", says: "each setting only once"},
		{name: "no settings at all", file: address + "\n", says: "one setting per line"},
		{name: "several documents", file: "log-level: info\n---\nlog-level: warn\n", says: "more than one document"},
		{name: "no YAML", file: "listen: [\n", says: "the configuration file: yaml:"},
		{name: "no file", args: []string{"--config", "missing.yaml"}, says: "--config missing.yaml: open"},
		{name: "mail server of another kind",
			args: []string{"--smtp-url", strings.Replace(address, "postgres:", "imap:", 1)},
			says: "--smtp-url must be a URL such as"},
		{name: "mail server with half a credential",
			args: []string{"--smtp-url", "smtps://me@127.0.0.1:1", "--smtp-from", "a@example.org"},
			says: "or put the password into the URL, after the user and a colon"},
		{name: "mail server without a sender",
			env: []string{"SIGNET_SMTP_URL=" + strings.Replace(address, "postgres:", "smtps:", 1)}, says: "--smtp-"},
		{name: "bad value in a list from the environment", env: []string{"SIGNET_TRUSTED_PROXIES=10.0.0.0/8, proxy"},
			says: `--trusted-proxies " proxy"`},
		{name: "bad value in a list from the file", file: "cors-origins: [https://app.example.org, nothing]\n",
			says: `--cors-origins "nothing"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"start", "--data-dir", filepath.Join(dir, "data")}
			if c.file != "" {
				args = append(args, "--config", writeFile(t, filepath.Join(dir, "signet.yaml"), c.file, 0o600))
			}
			// Nothing that starts by mistake is in the way of anybody.
			env := append([]string{"SIGNET_LISTEN=localhost:0"}, c.env...)
			r := run(t, env, append(args, c.args...)...)
			r.refused(t, c.says)
			for _, secret := range []string{password, key, key[1:]} {
				if strings.Contains(r.stdout+r.stderr, secret) {
					t.Errorf("it gives a secret away: %s", r.stderr)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "data", "signet.db")); err == nil {
				t.Error("there is a database")
			}
		})
	}
}

func TestLists(t *testing.T) {
	s := embedded(t)
	file := writeFile(t, filepath.Join(t.TempDir(), "signet.yaml"),
		"cors-origins:\n  - https://one.example.org\n  - https://two.example.org\n", 0o600)
	for name, p := range map[string]func() *process{
		"the file": func() *process { return s.launch(t, nil, "--config", file) },
		"the environment": func() *process {
			return s.launch(t, []string{"SIGNET_CORS_ORIGINS=https://one.example.org, https://two.example.org"})
		},
		"flags": func() *process {
			return s.launch(t, nil, "--cors-origins", "https://one.example.org", "--cors-origins",
				"https://two.example.org")
		},
	} {
		p := p()
		p.awaitReady(t)
		for _, origin := range []string{"https://one.example.org", "https://two.example.org"} {
			r := newRequest(t, "GET", p.url+"/healthz")
			r.Header.Set("Origin", origin)
			if got := answer(t, newClient(t, p, "").http, r).Header.Get("Access-Control-Allow-Origin"); got != origin {
				t.Errorf("from %s: %s gets %q", name, origin, got)
			}
		}
		p.stop(t)
	}
}
