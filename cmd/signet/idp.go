package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/signet-idm/signet/cmd/signet/remote"
	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/progress"
)

type checkIDPCmd struct {
	ID    string `arg:"" name:"idp-id" help:"Identifier of the identity provider."`
	Adopt bool   `help:"If the check passes, answer for the configuration from now on, in place of whoever did before."`
	JSON  bool   `name:"json" help:"Print the answer of the server as JSON."`
	remoteFlags
}

// errProblems makes a check exit with 1 after it has said why.
var errProblems = errors.New("people cannot sign in through this identity provider: solve the problems above, then check it again")

func (c *checkIDPCmd) Run(ctx context.Context) error {
	server, err := c.target()
	if err != nil {
		return err
	}
	client := signetv1connect.NewIdentityProviderServiceClient(remote.NewHTTPClient(), server.URL,
		connect.WithGRPCWeb(), connect.WithReadMaxBytes(1<<20))
	call, header := server.Call(ctx)
	if c.Adopt {
		// What is answered for is what is shown here, and nothing that comes after it.
		reading, _ := server.Call(ctx)
		read, err := client.GetIdentityProvider(reading, &signetv1.GetIdentityProviderRequest{IdpId: c.ID})
		if err != nil {
			return remote.InWords(err)
		}
		showUnconfirmed(read.GetIdp())
		header.Set("if-match", fmt.Sprintf(`"%d"`, read.GetIdp().GetDetails().GetSequence()))
	}
	found, err := client.CheckIdentityProvider(call,
		&signetv1.CheckIdentityProviderRequest{IdpId: c.ID, Adopt: c.Adopt})
	if err != nil {
		return remote.InWords(err)
	}
	if c.JSON {
		text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(found)
		if err != nil {
			return err
		}
		var line bytes.Buffer // the library adds blanks at random
		if err := json.Compact(&line, text); err != nil {
			return err
		}
		fmt.Fprintln(stdout, line.String())
	} else {
		showProblems(found)
	}
	if !found.GetOk() {
		return errProblems
	}
	return nil
}

// showUnconfirmed prints which settings somebody with fewer rights has changed.
func showUnconfirmed(p *signetv1.IdentityProvider) {
	for _, u := range p.GetUnconfirmed() {
		fmt.Fprintf(stderr, "%s (%s) changed: %s\n", u.GetUserId(), strings.Join(u.GetRoles(), ", "),
			strings.Join(u.GetSettings(), ", "))
	}
}

// showProblems prints each problem with what to do about it.
func showProblems(found *signetv1.CheckIdentityProviderResponse) {
	for _, p := range found.GetProblems() {
		kind := "problem"
		if p.GetWarning() {
			kind = "warning"
		}
		fmt.Fprintf(stdout, "%s %s: %s\n  %s\n", kind, p.GetCheck(), progress.Line(p.GetMessage()),
			progress.Line(p.GetHint()))
	}
	if found.GetOk() {
		fmt.Fprintln(stdout, "ok: no problem was found that keeps people from signing in")
	}
}
