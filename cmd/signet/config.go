package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// yamlFile reads the configuration file. A flag beats the environment, the environment beats the file, and a key that
// no flag has is refused: a typing error must not silently leave a default in place.
func yamlFile(r io.Reader) (kong.Resolver, error) {
	values := map[string]any{}
	if err := yaml.NewDecoder(r).Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the configuration file: %w", err)
	}
	return fileResolver(values), nil
}

type fileResolver map[string]any

// Validate refuses keys that are not the name of any flag.
func (f fileResolver) Validate(app *kong.Application) error {
	known := map[string]bool{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known[flag.Name] = true
		}
		return next(nil)
	})
	for key := range f {
		if !known[key] || key == "config" || key == "help" {
			return fmt.Errorf("the configuration file sets %q, which is not a setting: see signet start --help", key)
		}
	}
	return nil
}

// Resolve gives the file's value of a flag, unless the environment has one.
func (f fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	value, set := f[flag.Name]
	if !set {
		return nil, nil
	}
	return value, nil
}
