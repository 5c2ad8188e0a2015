// Command preview serves every page with made-up data in every language, for whoever works on how they look:
//
//	go run ./test/preview [ADDRESS]
package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/signet-idm/signet/internal/transport/pages/pagestest"
)

func main() {
	address := "localhost:8090"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if err := serve(address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	handler, err := pagestest.Handler(&url.URL{Scheme: "http", Host: address}, slog.Default())
	if err != nil {
		return err
	}
	fmt.Printf("all pages are at http://%s/\n", address)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}
