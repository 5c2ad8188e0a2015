package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// user is the number that the program runs as. A number, so that whoever runs the image can see that it is not root.
const user = 65532

const (
	dataDir = "/var/lib/signet"

	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// platform is a processor that the image is for, and the program for it.
type platform struct{ arch, binary string }

// The parts of the OCI image format that are used here.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *ociPlatform      `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	ociPlatform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	index struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Manifests     []descriptor      `json:"manifests"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	manifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Annotations   map[string]string `json:"annotations"`
	}
	imageConfig struct {
		Created      string        `json:"created"`
		Architecture string        `json:"architecture"`
		OS           string        `json:"os"`
		Config       runConfig     `json:"config"`
		RootFS       rootFS        `json:"rootfs"`
		History      []historyItem `json:"history"`
	}
	runConfig struct {
		User         string
		ExposedPorts map[string]struct{}
		Env          []string
		Entrypoint   []string
		Cmd          []string
		Volumes      map[string]struct{}
		WorkingDir   string
		Labels       map[string]string
		Healthcheck  healthcheck // Docker's addition to the format
	}
	healthcheck struct {
		Test                                    []string
		Interval, Timeout, StartPeriod, Retries int64
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	historyItem struct {
		Created   string `json:"created"`
		CreatedBy string `json:"created_by"`
	}
)

// layout collects the files of an image in the order in which they are made.
type layout struct{ files []entry }

func (l *layout) blob(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	l.files = append(l.files, entry{name: "blobs/sha256/" + sum, mode: 0o644, text: content})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

func (l *layout) document(mediaType string, content any) (descriptor, error) {
	text, err := json.Marshal(content)
	return l.blob(mediaType, text), err
}

// image writes the image as an OCI layout in a tar file, for all platforms. No daemon is needed to make it.
func (r *release) image(platforms []platform, roots []byte) error {
	if len(platforms) == 0 {
		return nil
	}
	created := r.time.Format(time.RFC3339)
	about := map[string]string{
		"org.opencontainers.image.title":       "Signet",
		"org.opencontainers.image.description": "An identity and organization service",
		"org.opencontainers.image.version":     r.version, "org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created":  created,
		"org.opencontainers.image.source":   "https://github.com/signet-idm/signet",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	l := &layout{files: []entry{{name: "oci-layout", mode: 0o644, text: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}}
	all := index{SchemaVersion: 2, MediaType: typeIndex, Annotations: about}
	for _, p := range platforms {
		content, err := packTar(imageFiles(p.binary, roots), r.time)
		if err != nil {
			return err
		}
		packed, err := compress(content)
		if err != nil {
			return err
		}
		layer := l.blob(typeLayer, packed)
		config, err := l.document(typeConfig, imageConfig{
			Created:      created,
			Architecture: p.arch,
			OS:           "linux",
			Config:       settings(about),
			RootFS:       rootFS{"layers", []string{fmt.Sprintf("sha256:%x", sha256.Sum256(content))}},
			History:      []historyItem{{created, "packaging/release"}},
		})
		if err != nil {
			return err
		}
		made, err := l.document(typeManifest, manifest{2, typeManifest, config, []descriptor{layer}, about})
		if err != nil {
			return err
		}
		made.Platform = &ociPlatform{p.arch, "linux"}
		all.Manifests = append(all.Manifests, made)
	}
	whole, err := l.document(typeIndex, all)
	if err != nil {
		return err
	}
	tag := strings.ReplaceAll(r.version, "+", "-") // a tag has no +
	whole.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name": "signet:" + tag}
	entryPoint, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{whole}})
	if err != nil {
		return err
	}
	l.files = append(l.files, entry{name: "index.json", mode: 0o644, text: entryPoint})
	packed, err := packTar(l.files, r.time)
	if err != nil {
		return err
	}
	return os.WriteFile(r.name("image.tar"), packed, 0o644)
}

// imageFiles is the whole content of the image. It has no shell and no package: what is not there cannot be attacked
// and needs no updates.
func imageFiles(binary string, roots []byte) []entry {
	return []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, text: fmt.Appendf(nil, "root:x:0:\nsignet:x:%d:\n", user)},
		{name: "etc/passwd", mode: 0o644,
			text: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nsignet:x:%d:%d:signet:%s:/sbin/nologin\n", user,
				user, dataDir)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: roots},
		{name: "tmp/", mode: 0o777 | fs.ModeSticky},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "usr/bin/signet", mode: 0o755, from: binary},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: "usr/share/doc/signet/", mode: 0o755},
		{name: "usr/share/doc/signet/copyright", mode: 0o644, from: "LICENSE"},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: "var/lib/signet/", mode: 0o700, owner: user},
	}
}

func settings(labels map[string]string) runConfig {
	return runConfig{
		User:         fmt.Sprintf("%d:%d", user, user),
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		// Inside of a container, every address is one that somebody has chosen to reach from outside.
		Env:        []string{"PATH=/usr/bin", "SIGNET_DATA_DIR=" + dataDir, "SIGNET_LISTEN=:8080"},
		Entrypoint: []string{"/usr/bin/signet"},
		Cmd:        []string{"start"},
		Volumes:    map[string]struct{}{dataDir: {}},
		WorkingDir: "/",
		Labels:     labels,
		Healthcheck: healthcheck{Test: []string{"CMD", "/usr/bin/signet", "health"}, Interval: int64(10 * time.Second),
			Timeout: int64(10 * time.Second), StartPeriod: int64(time.Minute), Retries: 3},
	}
}
