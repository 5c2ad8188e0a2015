package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
)

// injected are the variables that Kubernetes sets for a service called signet, or signet-something.
var injected = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^SIGNET(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)
})

// warnAboutVariables names the variables that look like settings and are none: a typing error must not silently leave a
// default in place. They may be meant for another program, so that they are no reason to stop.
func warnAboutVariables(out io.Writer, app *kong.Application, environment []string) {
	for _, name := range unknownVariables(app, environment) {
		hint := "see signet start --help for the settings"
		if nearest := closest(name, variables(app)); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		fmt.Fprintf(out, "signet: the environment variable %s is not a setting, and is ignored: %s\n", name, hint)
	}
}

// unknownVariables are those that look like settings and are none.
func unknownVariables(app *kong.Application, environment []string) (unknown []string) {
	known := variables(app)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "SIGNET_") && value != "" && !slices.Contains(known, name) &&
			!injected().MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// variables are those that are settings.
func variables(app *kong.Application) []string {
	known := []string{"SIGNET_MASTER_KEY"}
	eachFlag(app, func(flag *kong.Flag) { known = append(known, flag.Envs...) })
	return known
}

// closest gives the name that takes the fewest changes of a letter, if they are few.
func closest(name string, known []string) (nearest string) {
	fewest := 4
	for _, k := range known {
		if n := changes(name, k); n < fewest {
			nearest, fewest = k, n
		}
	}
	return nearest
}

// changes counts the letters to insert, delete or replace to make b of a.
func changes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
