package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// bundled are the packages that the console imports (docs/decisions/0043). What these need themselves follows from the
// lock file.
var bundled = []string{"svelte", "bits-ui", "@internationalized/date", "@lucide/svelte", "@connectrpc/connect",
	"@connectrpc/connect-web", "@bufbuild/protobuf"}

// lockFile is what is used of the console's package-lock.json.
type lockFile struct {
	Packages map[string]struct {
		Version      string            `json:"version"`
		Integrity    string            `json:"integrity"`
		License      string            `json:"license"`
		Dependencies map[string]string `json:"dependencies"`
	} `json:"packages"`
}

// inBundle gives the places of bundled packages in the lock file, with all that they depend on.
func (l lockFile) inBundle() (places []string, err error) {
	type wanted struct{ name, by string }
	var open []wanted
	for _, name := range bundled {
		open = append(open, wanted{name: name})
	}
	for len(open) > 0 {
		next := open[0]
		open = open[1:]
		place := next.by + "/node_modules/" + next.name // a package may have its own version of another
		if _, own := l.Packages[place]; !own {
			place = "node_modules/" + next.name
		}
		p, found := l.Packages[place]
		if !found {
			return nil, fmt.Errorf("the lock file has no %s", next.name)
		}
		if slices.Contains(places, place) {
			continue
		}
		places = append(places, place)
		for name := range p.Dependencies {
			open = append(open, wanted{name, place})
		}
	}
	slices.Sort(places)
	return places, nil
}

// sbom lists what is in the program, in the format of CycloneDX: the Go modules, as the program itself knows them, and
// the packages that the console is built from. It has no time and no number of its own.
func (r *release) sbom(t target, binary string) error {
	path := r.name(t.system + "_" + t.arch + ".cdx.json")
	if err := r.tool("cyclonedx-gomod", "bin", "-json", "-noserial", "-std", "-version", "v"+r.version, "-output", path,
		binary); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	metadata, ok := document["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("%s has no metadata", path)
	}
	metadata["timestamp"] = r.time.Format(time.RFC3339)
	components, _ := document["components"].([]any)
	packages, err := consolePackages("web/console/package-lock.json")
	if err != nil {
		return err
	}
	document["components"] = append(components, packages...)
	if text, err = json.MarshalIndent(document, "", "  "); err != nil { // with sorted keys
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// consolePackages are the packages that the console is built from.
func consolePackages(path string) (components []any, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lock lockFile
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	places, err := lock.inBundle()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, place := range places {
		p := lock.Packages[place]
		name := place[strings.LastIndex(place, "node_modules/")+len("node_modules/"):]
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, name, err)
		}
		purl := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + p.Version
		component := map[string]any{
			"type":    "library",
			"bom-ref": purl,
			"purl":    purl,
			"name":    name,
			"version": p.Version,
			"scope":   "required",
			"hashes":  []any{map[string]any{"alg": "SHA-512", "content": hex.EncodeToString(sum)}},
		}
		if p.License != "" {
			component["licenses"] = []any{map[string]any{"license": map[string]any{"id": p.License}}}
		}
		components = append(components, component)
	}
	return components, nil
}
