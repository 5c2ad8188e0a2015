package app

import (
	"fmt"
	"maps"
	"slices"
)

// Unguarded says what is wrong with the list of guards.
func Unguarded() (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if g, there := guards[name]; !there || (g.widens == nil) != (g.harmless != "") {
			problems = append(problems,
				fmt.Sprintf("%s of App is not on the list in trust.go: say by which changes of it codes, tokens or data reach somebody, or why by none", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(guards)) {
		if parts[name] == nil {
			problems = append(problems, name+" is on the list in trust.go and no part of App")
		}
	}
	return problems
}
