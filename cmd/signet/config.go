package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// newParser reads the command line, the environment and the configuration file into c. A flag beats the environment,
// the environment beats the file, and the file beats the default.
func newParser(c any) (*kong.Kong, error) {
	// A variable that is set to nothing is not set: that is how container set-ups leave a value out.
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "SIGNET_") && value == "" {
			if err := os.Unsetenv(name); err != nil {
				return nil, err
			}
		}
	}
	return kong.New(c, kong.Name("signet"), kong.Description("An identity and organization service."),
		kong.DefaultEnvars("SIGNET"), kong.Configuration(readFile), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
}

// configFile is the name of the configuration file.
type configFile string

// BeforeResolve lets kong read the file once the command line is known.
func (configFile) BeforeResolve(parser *kong.Kong, ctx *kong.Context, path *kong.Path) error {
	name, _ := ctx.FlagValue(path.Flag).(configFile)
	resolver, err := parser.LoadConfig(string(name))
	if err != nil {
		return fmt.Errorf("--config %s: %w", name, err)
	}
	ctx.AddResolver(resolver)
	return nil
}

// file is the configuration file: a key per flag.
type file map[string]yaml.Node

// readFile reads the configuration file. What it says is wrong never quotes a value: there may be a password in it.
func readFile(r io.Reader) (kong.Resolver, error) {
	values := file{}
	decoder := yaml.NewDecoder(r)
	err := decoder.Decode(&values)
	if _, wrongType := errors.AsType[*yaml.TypeError](err); wrongType {
		return nil, errors.New("the configuration file must have one setting per line, such as listen: localhost:8080, and each setting only once")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the configuration file: %w", err)
	}
	if err == nil && !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF) {
		return nil, errors.New("the configuration file has more than one document (---): keep only one")
	}
	return values, nil
}

// Validate refuses keys that are not the name of any flag: a typing error must not silently leave a default in place.
func (f file) Validate(app *kong.Application) error {
	known := map[string]bool{}
	eachFlag(app, func(flag *kong.Flag) { known[flag.Name] = true })
	for key := range f {
		if !known[key] || key == "config" || key == "help" {
			return fmt.Errorf("the configuration file contains the unknown setting %q: see signet start --help", key)
		}
	}
	return nil
}

// eachFlag calls use with the flags of all commands.
func eachFlag(app *kong.Application, use func(*kong.Flag)) {
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			use(flag)
		}
		return next(nil)
	})
}

// Resolve gives the file's value of a flag, unless the environment has one.
func (f file) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if os.Getenv(name) != "" {
			return nil, nil
		}
	}
	node, set := f[flag.Name]
	for node.Kind == yaml.AliasNode {
		node = *node.Alias
	}
	switch {
	case !set || node.Tag == "!!null":
		return nil, nil
	case node.Kind == yaml.ScalarNode:
		return node.Value, nil
	case node.Kind == yaml.SequenceNode && flag.IsSlice():
		list := []any{}
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("%s in the configuration file must be a list of plain values", flag.Name)
			}
			list = append(list, item.Value)
		}
		return list, nil
	}
	return nil, fmt.Errorf("%s in the configuration file must be one plain value", flag.Name)
}
