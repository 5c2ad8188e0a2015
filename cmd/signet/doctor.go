package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signet-idm/signet/internal/ops/doctor"
)

// doctorCmd takes all flags of start, so that it examines what a server would go by.
type doctorCmd struct {
	startCmd
	Mail    bool          `help:"Also connect to the mail server, with TLS and the password, without sending anything."`
	JSON    bool          `name:"json" help:"Print the findings as JSON."`
	Timeout time.Duration `help:"Time for each call to others. Default: ${default}." default:"5s" placeholder:"TIME"`
}

// exitCode ends the program with a code of its own, after everything was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func (c *doctorCmd) Run(ctx context.Context) error {
	config := c.serverConfig()
	findings := doctor.Examine(ctx, config, doctor.Options{Mail: c.Mail, Timeout: c.Timeout})
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range findings {
		findings[i].What = oneLine(findings[i].What)
	}
	worst := doctor.Worst(findings)
	if c.JSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(map[string]any{"level": worst, "version": version, "findings": findings}); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			fmt.Fprintf(stdout, "%-7s  %-14s  %s\n", f.Level, f.Check, f.What)
			if f.Do != "" {
				fmt.Fprintf(stdout, "%25s  → %s\n", "", f.Do)
			}
		}
	}
	switch worst {
	case doctor.Error:
		return exitCode(2)
	case doctor.Warning:
		return exitCode(1)
	}
	return nil
}
