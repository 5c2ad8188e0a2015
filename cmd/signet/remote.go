package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/signet-idm/signet/cmd/signet/remote"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
)

// remoteFlags say which running server a command works through. Every command that does has them.
type remoteFlags struct {
	Server    string `help:"URL of the server. Default: the one in first-admin.json." placeholder:"URL"`
	TokenFile string `help:"File with a token that may do this. Default: the token in first-admin.json." placeholder:"FILE"`
	DataDir   string `help:"Directory of first-admin.json. Default: ${default}." default:"./signet-data" placeholder:"DIR"`
	Org       string `help:"Organization to work in. Default: the organization of the token's user." placeholder:"ID"`
}

// target is the server, and the token to use. A token is sent only to the server that it is of.
func (f remoteFlags) target() (remote.Server, error) {
	if (f.Server == "") != (f.TokenFile == "") {
		return remote.Server{},
			errors.New("--server and --token-file belong together: give both, or none to use first-admin.json")
	}
	if f.Server == "" {
		return f.first()
	}
	if u, err := url.Parse(f.Server); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil {
		return remote.Server{}, errors.New("--server must be a URL such as https://id.example.org")
	}
	text, err := os.ReadFile(f.TokenFile)
	if err != nil {
		return remote.Server{}, fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return remote.Server{}, fmt.Errorf("%s must contain a token and nothing else", f.TokenFile)
	}
	return remote.Server{URL: strings.TrimSuffix(f.Server, "/"), Token: token, Org: f.Org}, nil
}

// first is the server of first-admin.json.
func (f remoteFlags) first() (remote.Server, error) {
	path := filepath.Join(f.DataDir, datadir.FirstAdminFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return remote.Server{},
			fmt.Errorf("cannot read server and token from first-admin.json: give --server and --token-file, or --data-dir: %w", err)
	}
	var first datadir.FirstAdmin
	if err := json.Unmarshal(text, &first); err != nil || first.URL == "" || first.Token == "" {
		return remote.Server{}, fmt.Errorf("%s does not contain server and token: give --server and --token-file", path)
	}
	return remote.Server{URL: first.URL, Token: first.Token, Org: f.Org}, nil
}
