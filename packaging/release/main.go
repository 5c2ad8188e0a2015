// Command release makes everything that is published with a version, byte for byte the same wherever it runs: the
// program for all systems, the image for containers, the Debian packages, the chart, an SBOM for each program, and the
// checksums.
//
// It runs at the root of the repository (scripts/release.sh does that, with the pinned tools and compiler):
//
//	release -out dist -certificates roots.pem
//	release -out dist -targets linux/amd64 -what deb
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is a system that the program is made for.
type target struct{ system, arch string }

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
	{"windows", "arm64"},
}

// release is what is made, and where.
type release struct {
	out     string
	version string // of the tag, or of the last tag and the commit
	commit  string
	time    time.Time // of the commit: the only time that anything here knows
}

func main() {
	out := flag.String("out", "dist", "folder to make, with everything in it")
	certificates := flag.String("certificates", "", "file with the certificates that the image trusts (PEM)")
	only := flag.String("targets", "", "comma-separated systems such as linux/amd64; default: all")
	what := flag.String("what", "", "deb or image: make only this; default: everything")
	flag.Parse()
	if err := run(*out, *certificates, *only, *what); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out, certificates, only, what string) error {
	makes := func(kind string) bool { return what == "" || what == kind }
	if !slices.Contains([]string{"", "deb", "image"}, what) {
		return fmt.Errorf("-what: %q is neither deb nor image", what)
	}
	r, err := newRelease(out)
	if err != nil {
		return err
	}
	var roots []byte
	if makes("image") {
		if roots, err = os.ReadFile(certificates); err != nil {
			return fmt.Errorf("-certificates: %w", err)
		}
	}
	work, err := os.MkdirTemp("", "signet-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var platforms []platform
	for _, t := range targets {
		if only != "" && !slices.Contains(strings.Split(only, ","), t.system+"/"+t.arch) {
			continue
		}
		fmt.Println("making", t.system, t.arch)
		binary, err := r.build(work, t)
		if err != nil {
			return err
		}
		if what == "" {
			if err := errors.Join(r.archive(t, binary), r.sbom(t, binary)); err != nil {
				return err
			}
		}
		if t.system != "linux" {
			continue
		}
		if makes("deb") {
			if err := r.debian(work, t, binary); err != nil {
				return err
			}
		}
		platforms = append(platforms, platform{t.arch, binary})
	}
	if makes("image") {
		if err := r.image(platforms, roots); err != nil {
			return err
		}
	}
	if what == "" {
		if err := r.chart(); err != nil {
			return err
		}
	}
	return r.sums()
}

var versionLine = regexp.MustCompile(`(?m)^const version = "(\d+\.\d+\.\d+)"$`)

// newRelease finds out what is released: a tag has to be the version that the program says.
func newRelease(out string) (*release, error) {
	source, err := os.ReadFile("cmd/signet/main.go")
	if err != nil {
		return nil, err
	}
	match := versionLine.FindSubmatch(source)
	if match == nil {
		return nil, errors.New("cmd/signet/main.go has no version")
	}
	r := &release{out: out, version: string(match[1])}
	var told [4]string
	for i, args := range [][]string{
		{"rev-parse", "HEAD"}, {"log", "-1", "--format=%ct"}, {"tag", "--points-at", "HEAD", "--list", "v[0-9]*"},
		{"status", "--porcelain"},
	} {
		text, err := exec.Command("git", args...).Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w", args[0], err)
		}
		told[i] = strings.TrimSpace(string(text))
	}
	seconds, err := strconv.ParseInt(told[1], 10, 64)
	if err != nil {
		return nil, err
	}
	r.commit, r.time = told[0], time.Unix(seconds, 0).UTC()
	tag, changed := told[2], told[3] != ""
	switch {
	case tag != "" && tag != "v"+r.version:
		return nil, fmt.Errorf("the tag is %s, and the program says that it is %s: see \"How to release a version\" in CONTRIBUTING.md", tag, r.version)
	case tag != "" && changed:
		return nil, errors.New("there are changes that are not committed: a release is made from the tag alone")
	case tag == "":
		r.version += "+" + r.commit[:12]
		if changed {
			r.version += ".changed"
		}
	}
	return r, nil
}

// name is that of a file of the release.
func (r *release) name(parts string) string {
	return filepath.Join(r.out, "signet_"+r.version+"_"+parts)
}

// build makes the program. Nothing of the machine or of how the repository was cloned gets into it.
func (r *release) build(work string, t target) (string, error) {
	binary := filepath.Join(work, t.system+"_"+t.arch, "signet")
	if t.system == "windows" {
		binary += ".exe"
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X main.commit="+r.commit, "-o", binary, "./cmd/signet")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.system, "GOARCH="+t.arch, "GOFLAGS=", "GOWORK=off",
		"GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return binary, cmd.Run()
}

// archive puts the program and its licence into a file for people who install it by hand.
func (r *release) archive(t target, binary string) error {
	files := []entry{{name: filepath.Base(binary), mode: 0o755, from: binary},
		{name: "LICENSE", mode: 0o644, from: "LICENSE"}, {name: "CHANGELOG.md", mode: 0o644, from: "CHANGELOG.md"}}
	if t.system == "windows" {
		return writeZip(r.name(t.system+"_"+t.arch+".zip"), files, r.time)
	}
	return writeTarGz(r.name(t.system+"_"+t.arch+".tar.gz"), files, r.time)
}

// debian makes the package from packaging/nfpm.yaml.
func (r *release) debian(work string, t target, binary string) error {
	text, err := os.ReadFile("packaging/nfpm.yaml")
	if err != nil {
		return err
	}
	values := map[string]string{"ARCH": t.arch, "VERSION": r.version, "BINARY": binary,
		"MTIME": r.time.Format(time.RFC3339)}
	config := filepath.Join(work, "nfpm.yaml")
	if err := os.WriteFile(config, []byte(os.Expand(string(text), func(name string) string { return values[name] })),
		0o644); err != nil {
		return err
	}
	return r.tool("nfpm", "package", "--packager", "deb", "--config", config, "--target", r.name(t.arch+".deb"))
}

// tool runs one of the pinned tools.
func (r *release) tool(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", r.time.Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// chart packs the Helm chart as this version. Helm itself would put the time into it.
func (r *release) chart() error {
	var files []entry
	const root = "packaging/chart"
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		if name == "Chart.yaml" {
			text = []byte(strings.ReplaceAll(string(text), "0.0.0", r.version))
		}
		files = append(files, entry{name: "signet/" + name, mode: 0o644, text: text})
		return nil
	})
	if err != nil {
		return err
	}
	return writeTarGz(filepath.Join(r.out, "signet-"+r.version+".tgz"), files, r.time)
}

// sums writes the checksums of everything, as sha256sum --check reads them.
func (r *release) sums() error {
	names, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, n := range names {
		text, err := os.ReadFile(filepath.Join(r.out, n.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(text), n.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(list.String()), 0o644)
}
