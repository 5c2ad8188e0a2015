//go:build packages

package packaging

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signet-idm/signet/test/testkit"
)

const patience = time.Minute

// made finds the one file of the release with this ending.
func made(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("PACKAGES_DIST"), pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	return found[0]
}

// sh runs a command that has to succeed.
func sh(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// service is a running server, and what it tells its systemd.
type service struct {
	cmd  *exec.Cmd
	out  *bytes.Buffer
	conn *net.UnixConn
	done chan error
}

// start runs a server that tells notify, a path that it sees under another name, when it is ready.
func start(t *testing.T, notify string, cmd *exec.Cmd) *service {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(notify, 0o777), conn.SetReadDeadline(time.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	s := &service{cmd: cmd, out: &bytes.Buffer{}, conn: conn, done: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = s.out, s.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		conn.Close()
	})
	s.hears(t, "READY=1")
	return s
}

func (s *service) hears(t *testing.T, want string) {
	t.Helper()
	for {
		text := make([]byte, 100)
		n, err := s.conn.Read(text)
		if err != nil {
			s.cmd.Process.Kill()
			<-s.done
			t.Fatalf("waiting for %s: %v\n%s", want, err, s.out)
		}
		if string(text[:n]) == want {
			return
		}
	}
}

// stop ends the server as systemd and container engines do.
func (s *service) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.hears(t, "STOPPING=1")
	if err := <-s.done; err != nil {
		t.Errorf("it ended with %v\n%s", err, s.out)
	}
}

// use signs the first administrator in and reads the account.
func use(t *testing.T, url, firstAdmin string) {
	t.Helper()
	var admin struct{ LoginName, Password, Token string }
	if err := json.Unmarshal([]byte(firstAdmin), &admin); err != nil {
		t.Fatalf("%v: %s", err, firstAdmin)
	}
	body, err := json.Marshal(map[string]string{"loginName": admin.LoginName, "password": admin.Password})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/v1/sessions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Errorf("signing in: %s %s", resp.Status, text)
	}
	if console := sh(t, "curl", "--silent", "--fail", url+"/console/"); !strings.Contains(console, "<html") {
		t.Errorf("the console is %q", console)
	}
}

// image is what an unpacked image says.
type image struct {
	Config struct {
		User        string
		Env         []string
		Entrypoint  []string
		Cmd         []string
		Volumes     map[string]struct{}
		Healthcheck struct{ Test []string }
	} `json:"config"`
}

// unpack takes the image for this processor apart, checking every digest on the way, and gives its settings and its
// root.
func unpack(t *testing.T, dir string) (config image, rootfs string) {
	t.Helper()
	layout := filepath.Join(dir, "layout")
	// Another program's reading of the format: it follows every digest.
	sh(t, "skopeo", "--insecure-policy", "copy", "--quiet", "oci-archive:"+made(t, "*_image.tar"),
		"oci:"+layout+":test")
	var index, manifest struct {
		Manifests []struct{ Digest string }
		Config    struct{ Digest string }
		Layers    []struct{ Digest string }
	}
	blob := func(digest string, into any) string {
		t.Helper()
		path := filepath.Join(layout, "blobs", strings.Replace(digest, ":", "/", 1))
		if into != nil {
			text, err := os.ReadFile(path)
			if err = errors.Join(err, json.Unmarshal(text, into)); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	text, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err = errors.Join(err, json.Unmarshal(text, &index)); err != nil {
		t.Fatal(err)
	}
	blob(index.Manifests[0].Digest, &manifest)
	blob(manifest.Config.Digest, &config)
	rootfs = filepath.Join(dir, "rootfs")
	if err := os.Mkdir(rootfs, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, l := range manifest.Layers {
		sh(t, "tar", "--extract", "--gzip", "--numeric-owner", "--same-owner", "--same-permissions", "--file",
			blob(l.Digest, nil), "--directory", rootfs)
	}
	return config, rootfs
}

// TestPackagesImage runs the image as a container engine would: its user, its variables, a root that cannot be written,
// no capabilities.
func TestPackagesImage(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	config, rootfs := unpack(t, dir)
	if config.Config.User != "65532:65532" || len(config.Config.Volumes) != 1 {
		t.Errorf("user %q, volumes %v", config.Config.User, config.Config.Volumes)
	}
	for _, shell := range []string{"bin/sh", "usr/bin/sh"} {
		if _, err := os.Lstat(filepath.Join(rootfs, shell)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there is a %s", shell)
		}
	}
	if roots, err := os.ReadFile(filepath.Join(rootfs, "etc/ssl/certs/ca-certificates.crt")); err != nil ||
		bytes.Count(roots, []byte("BEGIN CERTIFICATE")) < 100 {
		t.Errorf("the certificates: %d bytes, %v", len(roots), err)
	}
	data, run := filepath.Join(dir, "data"), filepath.Join(dir, "run")
	for _, d := range []string{data, run} {
		if err := errors.Join(os.Mkdir(d, 0o700), os.Chown(d, 65532, 65532)); err != nil {
			t.Fatal(err)
		}
	}
	port := testkit.FreePort(t)
	env := append(config.Config.Env, "SIGNET_LISTEN=127.0.0.1:"+port, "NOTIFY_SOCKET=/run/notify")
	bundle(t, dir, rootfs, append(config.Config.Entrypoint, config.Config.Cmd...), env,
		map[string]string{"/var/lib/signet": data, "/run": run})
	id := "signet-test-" + strconv.Itoa(os.Getpid())
	t.Cleanup(func() { exec.Command("runc", "delete", "--force", id).Run() })
	began := time.Now()
	s := start(t, filepath.Join(run, "notify"), exec.Command("runc", "run", "--bundle", dir, id))
	t.Logf("the container is ready after %v", time.Since(began).Round(time.Millisecond))
	exec2 := append([]string{"exec", "--env", "SIGNET_LISTEN=127.0.0.1:" + port, id},
		config.Config.Healthcheck.Test[1:]...)
	sh(t, "runc", exec2...)
	if out, err := exec.Command("runc", "exec", "--env", "SIGNET_LISTEN=127.0.0.1:1", id, "/usr/bin/signet",
		"health").CombinedOutput(); err == nil {
		t.Errorf("the health check passes where nobody listens: %s", out)
	}
	use(t, "http://127.0.0.1:"+port, sh(t, "runc", "exec", id, "/usr/bin/signet", "admin", "first"))
	sh(t, "runc", "kill", id, "TERM")
	s.hears(t, "STOPPING=1")
	if err := <-s.done; err != nil {
		t.Errorf("the container ended with %v\n%s", err, s.out)
	}
}

// bundle writes the settings for runc. The container has the network of this machine, so that it can be called.
func bundle(t *testing.T, dir, rootfs string, args, env []string, mounts map[string]string) {
	t.Helper()
	sh(t, "runc", "spec", "--bundle", dir)
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	var spec map[string]any
	if err = errors.Join(err, json.Unmarshal(text, &spec)); err != nil {
		t.Fatal(err)
	}
	spec["root"] = map[string]any{"path": rootfs, "readonly": true}
	process := spec["process"].(map[string]any)
	process["terminal"], process["args"], process["env"], process["cwd"] = false, args, env, "/"
	process["user"] = map[string]any{"uid": 65532, "gid": 65532}
	process["capabilities"], process["noNewPrivileges"] = map[string]any{}, true
	delete(process, "rlimits")
	linux := spec["linux"].(map[string]any)
	linux["namespaces"] = []any{map[string]any{"type": "pid"}, map[string]any{"type": "mount"},
		map[string]any{"type": "ipc"}, map[string]any{"type": "uts"}}
	// those are for namespaces that it does not have
	list := slices.DeleteFunc(spec["mounts"].([]any), func(m any) bool {
		return slices.Contains([]any{"/sys", "/sys/fs/cgroup"}, m.(map[string]any)["destination"])
	})
	for to, from := range mounts {
		list = append(list, map[string]any{"destination": to, "source": from, "type": "bind",
			"options": []string{"rbind", "rw"}})
	}
	spec["mounts"] = list
	if text, err = json.Marshal(spec); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for to := range mounts {
		if err := os.MkdirAll(filepath.Join(rootfs, to), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPackagesDebian installs the package in a fresh Debian, starts it as its unit would, uses it, removes and purges
// it.
func TestPackagesDebian(t *testing.T) {
	debian := filepath.Join(t.TempDir(), "debian")
	sh(t, "cp", "--archive", os.Getenv("PACKAGES_DEBIAN"), debian)
	if err := os.Chmod(filepath.Dir(debian), 0o755); err != nil {
		t.Fatal(err)
	}
	chroot := func(args ...string) string { return sh(t, "chroot", append([]string{debian}, args...)...) }
	in := func(path string) string { return filepath.Join(debian, path) }
	exists := func(path string) bool {
		_, err := os.Lstat(in(path))
		return err == nil
	}
	before := listing(t, debian)
	sh(t, "cp", made(t, "*.deb"), in("signet.deb"))
	said := chroot("dpkg", "--install", "/signet.deb")
	if !strings.Contains(said, "set SIGNET_EXTERNAL_URL in /etc/signet/signet.env") {
		t.Errorf("the installation says %q", said)
	}
	chroot("dpkg", "--purge", "signet") // never started: nothing is kept
	os.Remove(in("signet.deb"))
	if left := difference(listing(t, debian), before); len(left) > 0 {
		t.Errorf("a purge of what never ran leaves %q", left)
	}

	sh(t, "cp", made(t, "*.deb"), in("signet.deb"))
	chroot("dpkg", "--install", "/signet.deb")
	if version := chroot("signet", "version"); !strings.HasPrefix(version, "signet ") {
		t.Errorf("signet version: %s", version)
	}
	port := testkit.FreePort(t)
	settings, err := os.OpenFile(in("/etc/signet/signet.env"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(settings, "SIGNET_LISTEN=127.0.0.1:%s\n", port)
	settings.Close()
	// As the unit does it: its user, the variables of the unit and of the file, and nothing else.
	service := unit(t, "packaging/systemd/signet.service")
	env := slices.Concat(service["Environment"], variables(t, in(service["EnvironmentFile"][0])),
		[]string{"NOTIFY_SOCKET=/notify", "WATCHDOG_USEC=3000000"})
	args := slices.Concat([]string{"--userspec=" + service["User"][0] + ":" + service["Group"][0], debian,
		"/usr/bin/env", "--ignore-environment"}, env, strings.Fields(service["ExecStart"][0]))
	s := start(t, in("notify"), exec.Command("chroot", args...))
	s.hears(t, "WATCHDOG=1")
	first, err := os.ReadFile(in("/var/lib/signet/first-admin.json"))
	if err != nil {
		t.Fatal(err)
	}
	use(t, "http://127.0.0.1:"+port, string(first))
	s.stop(t)
	os.Remove(in("notify"))

	chroot("dpkg", "--remove", "signet")
	if exists("/usr/bin/signet") || !exists("/etc/signet/signet.env") || !exists("/var/lib/signet/signet.db") {
		t.Error("removing the package removes the program, and keeps settings and data")
	}
	said = chroot("dpkg", "--purge", "signet")
	if !strings.Contains(said, "/var/lib/signet (database, master key) and the user signet are kept") {
		t.Errorf("the purge says %q", said)
	}
	if exists("/etc/signet") || !exists("/var/lib/signet/signet.db") || !exists("/var/lib/signet/master.key") {
		t.Error("a purge removes the settings, and keeps the data")
	}
}

// variables reads an EnvironmentFile.
func variables(t *testing.T, path string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

// listing names everything in a system but what dpkg and others write about themselves.
func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, dir)
		for _, prefix := range []string{"/var/lib/dpkg", "/var/log", "/var/cache", "/proc", "/sys", "/dev", "/run",
			"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock"} {
			if strings.HasPrefix(name, prefix) {
				return nil
			}
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range variables(t, filepath.Join(dir, "etc/passwd")) {
		names = append(names, "user "+user)
	}
	return names
}

func difference(now, before []string) (more []string) {
	for _, name := range now {
		if !slices.Contains(before, name) {
			more = append(more, name)
		}
	}
	return more
}

// TestPackagesUnit asks systemd itself what it thinks of the units.
func TestPackagesUnit(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"signet.service", "signet.socket", "signet-metrics.socket"} {
		// systemd-analyze looks for the program
		text := strings.Replace(read(t, "packaging/systemd/"+name), "/usr/bin/signet ", "/bin/true ", 1)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	verify := exec.Command("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
		filepath.Join(dir, "signet.service"), filepath.Join(dir, "signet.socket"),
		filepath.Join(dir, "signet-metrics.socket"))
	if out, err := verify.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out := sh(t, "systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager",
		filepath.Join(dir, "signet.service"))
	t.Log(regexp.MustCompile(`Overall exposure level.*`).FindString(out))
}

// TestPackagesChart renders the chart as the release packs it, for one node and for three, and has both validated by
// the schemas of Kubernetes.
func TestPackagesChart(t *testing.T) {
	const kubernetes = "1.30.0"
	chart := made(t, "signet-*.tgz")
	needed := []string{"--set",
		"externalUrl=https://id.example.org,existingSecret.name=signet,ingress.enabled=true,networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b,trustedProxies={10.0.0.0/8}"}
	sh(t, "helm", append([]string{"lint", "--strict", chart}, needed...)...)
	for engine, c := range map[string]struct {
		set         []string
		want, stops string
	}{
		"sqlite": {[]string{"--set", "engine=sqlite"}, "Ingress NetworkPolicy Service ServiceAccount StatefulSet",
			"terminationGracePeriodSeconds: 35\n"},
		"postgresql": {[]string{"--set", "autoscaling.enabled=true"},
			"Deployment HorizontalPodAutoscaler Ingress Job NetworkPolicy PodDisruptionBudget Service ServiceAccount",
			"terminationGracePeriodSeconds: 45\n"},
	} {
		text := sh(t, "helm", slices.Concat([]string{"template", "signet", chart, "--namespace", "id", "--kube-version",
			kubernetes, "--is-upgrade"}, needed, c.set)...)
		var kinds []string
		for _, m := range regexp.MustCompile(`(?m)^kind: (\w+)`).FindAllStringSubmatch(text, -1) {
			kinds = append(kinds, m[1])
		}
		slices.Sort(kinds)
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("%s: %s, want %s", engine, got, c.want)
		}
		if !strings.Contains(text, c.stops) {
			t.Errorf("%s: it stops otherwise than with %s", engine, c.stops)
		}
		path := filepath.Join(t.TempDir(), engine+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Log(sh(t, "kubectl-validate", "--version", "1.30", path))
	}
	three := sh(t, "helm", append([]string{"template", "signet", chart, "--kube-version", kubernetes}, needed...)...)
	if !strings.Contains(three, "replicas: 3\n") {
		t.Error("there are not three nodes")
	}
	for set, says := range map[string]string{
		"existingSecret.name=x":                                                              "set externalUrl",
		"externalUrl=http://id.example.org,existingSecret.name=x":                            "set externalUrl",
		"externalUrl=https://id.example.org":                                                 "set existingSecret.name",
		"externalUrl=https://a,existingSecret.name=x,engine=sqlite,autoscaling.enabled=true": "is for one node",
		"externalUrl=https://a,existingSecret.name=x,engine=mysql":                           "engine must be",
	} {
		if out, err := exec.Command("helm", "template", chart, "--kube-version", kubernetes, "--set",
			set).CombinedOutput(); err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v, want %q\n%s", set, err, says, out)
		}
	}
}

func TestPackagesCompose(t *testing.T) {
	check := func(env []string, path string) ([]byte, error) {
		cmd := exec.Command("composecheck", path)
		cmd.Env = append(os.Environ(), env...)
		return cmd.CombinedOutput()
	}
	for path, env := range map[string][]string{"compose.yaml": nil,
		"compose.cluster.yaml": {"SIGNET_MASTER_KEY=k", "POSTGRES_PASSWORD=p", "SIGNET_HOST=id.example.org"}} {
		out, err := check(env, root+"packaging/compose/"+path)
		if err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
		t.Logf("%s", out)
	}
	if out, err := check(nil, root+"packaging/compose/compose.cluster.yaml"); err == nil ||
		!strings.Contains(string(out), "in .env") {
		t.Errorf("without .env: %v\n%s", err, out)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("services:\n  a:\n    image: a\n    healtcheck: {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := check(nil, wrong); err == nil {
		t.Error("what the schema does not know is accepted: is it judged at all?")
	}
}

// TestPackagesArchive unpacks the program that people install by hand, and runs it.
func TestPackagesArchive(t *testing.T) {
	packed, err := os.Open(made(t, "*_linux_"+runtime.GOARCH+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "signet")
	var names []string
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if header.Name == "signet" {
			text, err := io.ReadAll(r)
			if err = errors.Join(err, os.WriteFile(binary, text, header.FileInfo().Mode())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"signet", "LICENSE", "CHANGELOG.md"}; !slices.Equal(names, want) {
		t.Errorf("the archive has %q", names)
	}
	commit := strings.TrimSpace(sh(t, "git", "rev-parse", "HEAD"))
	if said := sh(t, binary, "version"); !strings.Contains(said, " "+commit+" ") {
		t.Errorf("the program says %q and not its commit %s", said, commit)
	}
	var parts struct {
		SerialNumber string
		Components   []struct{ Name, Version, Purl string }
	}
	text, err := os.ReadFile(made(t, "*_linux_"+runtime.GOARCH+".cdx.json"))
	if err = errors.Join(err, json.Unmarshal(text, &parts)); err != nil {
		t.Fatal(err)
	}
	count := func(kind string) (n int) {
		for _, c := range parts.Components {
			if strings.HasPrefix(c.Purl, kind) {
				n++
			}
		}
		return n
	}
	if count("pkg:golang/") < 30 || count("pkg:npm/svelte@") != 1 || parts.SerialNumber != "" {
		t.Errorf("the SBOM has %d modules and %d packages", count("pkg:golang/"), count("pkg:npm/"))
	}
	t.Logf("%d modules and %d packages", count("pkg:golang/"), count("pkg:npm/"))
	sh(t, "sh", "-c", `cd "$PACKAGES_DIST" && sha256sum --check SHA256SUMS`)
}
