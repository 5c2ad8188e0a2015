// Package packaging tests what packages of Signet promise: the unit, the Debian package, the image, the chart and the
// compose files. What needs no installation is tested here by reading it; make packages installs and runs it all
// (packages_test.go).
package packaging

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const root = "../../"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unit reads the settings of a unit; one that stands there twice has all its values.
func unit(t *testing.T, path string) map[string][]string {
	t.Helper()
	settings := map[string][]string{}
	for line := range strings.Lines(read(t, path)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "[") {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if !found {
			t.Errorf("%s: %q is no setting", path, line)
		}
		settings[name] = append(settings[name], value)
	}
	return settings
}

func TestTheUnitLocksTheServiceIn(t *testing.T) {
	settings := unit(t, "packaging/systemd/signet.service")
	for name, want := range map[string]string{
		"Type": "notify", "ExecStart": "/usr/bin/signet start", "User": "signet", "StateDirectory": "signet",
		"StateDirectoryMode": "0700", "EnvironmentFile": "/etc/signet/signet.env",
		"WatchdogSec": "30s", "Restart": "on-failure", "CapabilityBoundingSet": "", "NoNewPrivileges": "true",
		"ProtectSystem": "strict", "ProtectHome": "true", "PrivateTmp": "true",
		"PrivateDevices": "true", "PrivateUsers": "true", "ProtectProc": "invisible", "MemoryDenyWriteExecute": "true",
		"RestrictNamespaces": "true", "SystemCallArchitectures": "native",
		"UMask": "0077",
	} {
		if got := settings[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if filter := strings.Join(settings["SystemCallFilter"], " "); filter != "@system-service ~@privileged @resources" {
		t.Errorf("system calls: %s", filter)
	}
	if name := unit(t, "packaging/systemd/signet-metrics.socket")["FileDescriptorName"]; !slices.Equal(name,
		[]string{"metrics"}) {
		t.Errorf("the server looks for a socket with the name metrics, and the unit says %q", name)
	}
}

func TestThePackageHasItsFiles(t *testing.T) {
	var config struct {
		Name     string
		Depends  []string
		Contents []struct {
			Src, Dst, Type string
			Info           struct{ Mode int } `yaml:"file_info"`
		}
		Scripts map[string]string
	}
	if err := yaml.Unmarshal([]byte(read(t, "packaging/nfpm.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	modes := map[string]int{}
	for _, c := range config.Contents {
		modes[c.Dst] = c.Info.Mode
		if !strings.HasPrefix(c.Src, "$") {
			read(t, c.Src)
		}
		if strings.HasPrefix(c.Dst, "/etc/") && c.Type != "config|noreplace" {
			t.Errorf("an upgrade would overwrite %s", c.Dst)
		}
	}
	for path, mode := range map[string]int{
		"/usr/bin/signet":                               0o755,
		"/usr/lib/systemd/system/signet.service":        0o644,
		"/usr/lib/systemd/system/signet.socket":         0o644,
		"/usr/lib/systemd/system/signet-metrics.socket": 0o644,
		"/etc/signet/signet.env":                        0o640,
		"/usr/share/doc/signet/copyright":               0o644,
	} {
		if modes[path] != mode {
			t.Errorf("%s has mode %o, want %o", path, modes[path], mode)
		}
	}
	for _, script := range config.Scripts {
		if text := read(t, script); !strings.HasPrefix(text, "#!/bin/sh\nset -e\n") {
			t.Errorf("%s goes on after an error", script)
		}
	}
	if !slices.Contains(config.Depends, "adduser") {
		t.Error("the package makes its user with adduser, and does not depend on it")
	}
	for _, m := range regexp.MustCompile(`(?m)^#?(SIGNET_[A-Z_]+)=`).FindAllStringSubmatch(read(t,
		"packaging/debian/signet.env"), -1) {
		knownSetting(t, "signet.env", m[1])
	}
}

// knownSetting checks that a variable is a setting in docs/operations, which other tests compare with the program.
func knownSetting(t *testing.T, where, variable string) {
	t.Helper()
	flag := "`--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "SIGNET_"), "_", "-")) + "`"
	if docs := read(t, "docs/operations/README.md"); !strings.Contains(docs, flag) &&
		!strings.Contains(docs, "`"+variable+"`") {
		t.Errorf("%s: %s is not a setting", where, variable)
	}
}

func TestComposeFilesRunSignetLockedIn(t *testing.T) {
	for _, path := range []string{"packaging/compose/compose.yaml", "packaging/compose/compose.cluster.yaml"} {
		var file struct {
			Services map[string]struct {
				Image       string
				ReadOnly    bool     `yaml:"read_only"`
				CapDrop     []string `yaml:"cap_drop"`
				Security    []string `yaml:"security_opt"`
				Volumes     []string
				Environment map[string]string
				Healthcheck struct{ Test []string }
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, path)), &file); err != nil {
			t.Fatal(err)
		}
		nodes := 0
		for name, s := range file.Services {
			if !strings.Contains(s.Image, "signet") {
				continue
			}
			nodes++
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
				!slices.Contains(s.Security, "no-new-privileges:true") {
				t.Errorf("%s: %s may do more than it needs", path, name)
			}
			if len(s.Volumes) != 1 || !strings.HasSuffix(s.Volumes[0], ":/var/lib/signet") ||
				!slices.Equal(s.Healthcheck.Test, []string{"CMD", "/usr/bin/signet", "health"}) {
				t.Errorf("%s: %s has the volumes %q and the health check %q", path, name, s.Volumes, s.Healthcheck.Test)
			}
			for variable := range s.Environment {
				knownSetting(t, path, variable)
			}
		}
		if nodes == 0 {
			t.Errorf("%s has no node", path)
		}
	}
}

// TestTheChartLocksThePodsIn reads the templates; make packages renders and validates them.
func TestTheChartLocksThePodsIn(t *testing.T) {
	helpers, job := read(t, "packaging/chart/templates/_helpers.tpl"), read(t, "packaging/chart/templates/migrate.yaml")
	for _, needed := range []string{"runAsNonRoot: true", "runAsUser: 65532", "seccompProfile: {type: RuntimeDefault}",
		"allowPrivilegeEscalation: false", "readOnlyRootFilesystem: true",
		"capabilities: {drop: [ALL]}", "path: /readyz", "path: /healthz", "name: SIGNET_SHUTDOWN_DELAY",
		`terminationGracePeriodSeconds: {{ add (include "signet.shutdownDelay" .) 35 }}`} {
		if !strings.Contains(helpers, needed) {
			t.Errorf("the pods lack %s", needed)
		}
	}
	for name, text := range map[string]string{"server": helpers, "migration": job} {
		for _, needed := range []string{"enableServiceLinks: false", "automountServiceAccountToken: false",
			`include "signet.podSecurity"`, `include "signet.containerSecurity"`, `include "signet.dataEnv"`} {
			if !strings.Contains(text, needed) {
				t.Errorf("the %s lacks %s", name, needed)
			}
		}
	}
	for _, m := range regexp.MustCompile(`name: (SIGNET_[A-Z_]+)`).FindAllStringSubmatch(helpers, -1) {
		knownSetting(t, "the chart", m[1])
	}
}
