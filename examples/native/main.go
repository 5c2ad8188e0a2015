// Command native is a program on somebody's computer that signs its user in with the browser. docs/guides/native.md
// explains it.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	provider, err := oidc.NewProvider(ctx, cmp.Or(os.Getenv("ISSUER"), "http://localhost:8080"))
	if err != nil {
		return fmt.Errorf("cannot read the configuration of Signet: is it running? %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // any free port: Signet compares everything but the port
	if err != nil {
		return err
	}
	config := oauth2.Config{
		ClientID: os.Getenv("CLIENT_ID"), Endpoint: provider.Endpoint(),
		RedirectURL: "http://" + listener.Addr().String() + "/callback",
		Scopes:      []string{oidc.ScopeOpenID, "profile", "email"},
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	fmt.Println("Open " + config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)))
	code, err := answer(listener, state)
	if err != nil {
		return err
	}
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return err
	}
	who, err := provider.UserInfo(ctx, config.TokenSource(ctx, token))
	if err != nil {
		return err
	}
	fmt.Println("Signed in:", who.Email, who.Subject)
	return nil
}

// answer waits until the browser comes back with a code for this state.
func answer(listener net.Listener, state string) (string, error) {
	answers, refused := make(chan string, 1), make(chan error, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/callback" || r.FormValue("state") != state:
			http.NotFound(w, r) // another program's request, or an old one
			return
		case r.FormValue("error") != "":
			refused <- fmt.Errorf("nobody signed in: Signet answered %s: %s", r.FormValue("error"),
				r.FormValue("error_description"))
		default:
			answers <- r.FormValue("code")
		}
		fmt.Fprintln(w, "You can close this page.")
	})}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Shutdown(context.Background()) }()
	select {
	case code := <-answers:
		return code, nil
	case err := <-refused:
		return "", err
	}
}
