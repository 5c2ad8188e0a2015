package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/signet-idm/signet/internal/datadir"
	"github.com/signet-idm/signet/internal/importer"
)

type importUsersCmd struct {
	File      string        `arg:"" help:"File with a user a line, or - for the standard input."`
	Format    string        `help:"ndjson or csv. By the ending of FILE (.ndjson, .jsonl, .csv) when left out." enum:",ndjson,csv" default:"" placeholder:"FORMAT"`
	Server    string        `help:"URL of the server. That of first-admin.json when left out." placeholder:"URL"`
	TokenFile string        `help:"File with a token that may import users. That of first-admin.json when left out." placeholder:"FILE"`
	DataDir   string        `help:"Directory of first-admin.json. ${default} when left out." default:"./signet-data" placeholder:"DIR"`
	Org       string        `help:"Organization to import into. That of the token's user when left out." placeholder:"ID"`
	State     string        `help:"File that keeps how far the import has come. FILE.import when left out." placeholder:"FILE"`
	Rejected  string        `help:"File for the lines that were rejected. FILE.rejected when left out." placeholder:"FILE"`
	GiveUp    time.Duration `help:"How long to wait for a server that does not answer. ${default} when left out." default:"5m" placeholder:"TIME"`
}

func (c *importUsersCmd) Run(ctx context.Context) error {
	i := importer.Import{Path: c.File, Org: c.Org, GiveUp: c.GiveUp, Progress: os.Stderr, Terminal: isatty.IsTerminal(os.Stderr.Fd()),
		State: cmp.Or(c.State, c.File+".import"), Rejected: cmp.Or(c.Rejected, c.File+".rejected")}
	if c.File == "-" {
		i.Rejected = cmp.Or(c.Rejected, "stdin.rejected")
	}
	var err error
	if i.Format, err = c.format(); err != nil {
		return err
	}
	if i.Server, i.Token, err = c.target(); err != nil {
		return err
	}
	summary, err := i.Run(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		err = errors.New("stopped")
		fallthrough
	case err != nil:
		if summary.Imported+summary.Rejected == 0 {
			return err
		}
		again := ": run the same command again to go on"
		if c.File == "-" {
			again = ""
		}
		return fmt.Errorf("%w (%d users were imported and %d lines rejected%s)", err, summary.Imported, summary.Rejected, again)
	case summary.Before:
		fmt.Printf("%s was imported before: nothing to do. Remove %s to import it again.\n", c.File, i.State)
	}
	fmt.Printf("%d users imported, %d lines rejected\n", summary.Imported, summary.Rejected)
	if summary.Rejected > 0 {
		return fmt.Errorf("%d lines were rejected: %s says why", summary.Rejected, i.Rejected)
	}
	return nil
}

func (c *importUsersCmd) format() (importer.Format, error) {
	if c.Format != "" {
		return importer.Format(c.Format), nil
	}
	switch strings.ToLower(filepath.Ext(c.File)) {
	case ".csv":
		return importer.CSV, nil
	case ".ndjson", ".jsonl":
		return importer.NDJSON, nil
	}
	return "", errors.New("the name of the file does not tell its format: give --format ndjson or --format csv")
}

// target is where to import to, and with which token. A token is sent only to the server that it is of.
func (c *importUsersCmd) target() (server, token string, err error) {
	if (c.Server == "") != (c.TokenFile == "") {
		return "", "", errors.New("--server and --token-file go together: give both, or none to use first-admin.json")
	}
	if c.Server != "" {
		if u, err := url.Parse(c.Server); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return "", "", errors.New("--server should look like https://id.example.org")
		}
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return "", "", fmt.Errorf("reading the token: %w", err)
		}
		token = strings.TrimSpace(string(text))
		if token == "" || strings.ContainsAny(token, " \t\r\n") {
			return "", "", fmt.Errorf("%s should hold a token and nothing else", c.TokenFile)
		}
		return strings.TrimSuffix(c.Server, "/"), token, nil
	}
	path := filepath.Join(c.DataDir, datadir.FirstAdminFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("there is no first-admin.json to take server and token from, so give --server and --token-file, or --data-dir: %w", err)
	}
	var first datadir.FirstAdmin
	if err := json.Unmarshal(text, &first); err != nil || first.URL == "" || first.Token == "" {
		return "", "", fmt.Errorf("%s does not hold server and token: give --server and --token-file", path)
	}
	return first.URL, first.Token, nil
}
