// Command composecheck reads compose files as Compose does: variables filled in, and everything judged by the schema of
// the specification.
//
//	composecheck FILE...
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Fprintf(os.Stderr, "composecheck: %s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func check(path string) error {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithOsEnv, cli.WithName("signet"))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	fmt.Println(path, project.ServiceNames())
	return nil
}
