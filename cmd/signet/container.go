package main

// Commands for operators who run the program in an image without a shell: health checks, the first credentials.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/signet-idm/signet/cmd/signet/remote"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
)

type healthCmd struct {
	Listen  string `help:"Address that the server listens on. Default: ${default}." default:"localhost:8080" placeholder:"HOST:PORT"`
	TLSCert string `name:"tls-cert" help:"Certificate chain of the server, if it serves TLS." placeholder:"FILE"`
}

func (c *healthCmd) Run(ctx context.Context) error {
	return remote.Probe(ctx, c.Listen, c.TLSCert != "", "/readyz")
}

type firstAdminCmd struct {
	DataDir        string `help:"Directory of first-admin.json. Default: ${default}." default:"./signet-data" placeholder:"DIR"`
	FirstAdminFile string `help:"The file, if it is elsewhere." placeholder:"FILE"`
}

func (c *firstAdminCmd) Run() error {
	path := c.FirstAdminFile
	if path == "" {
		path = filepath.Join(c.DataDir, datadir.FirstAdminFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: only the node that did the first start has the file; without it, signet admin recover creates a new owner", err)
	}
	_, err = stdout.Write(text)
	return err
}
