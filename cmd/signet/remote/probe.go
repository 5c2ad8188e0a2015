package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// probeTime is enough for a server that is well.
const probeTime = 10 * time.Second

// Probe asks a server on this machine, by the address that it listens on, whether it is well.
func Probe(ctx context.Context, listen string, secure bool, path string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("--listen %q must be an address such as localhost:8080", listen)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // a server that listens everywhere does so there; an image may not know the name localhost
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	// The certificate is for the name that clients use. Nothing is sent that somebody else must not have.
	client := &http.Client{Timeout: probeTime,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+path, nil)
	if err != nil {
		return fmt.Errorf("--listen %q must be an address such as localhost:8080", listen)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the server does not answer: check that it is running, and that --listen and --tls-cert are as at its start: %w", err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New("the server is not ready (" + answer.Status + "): its log says why")
	}
	return nil
}
