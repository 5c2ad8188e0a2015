package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profilesAddress is where the server on an engine serves its profiles, if a run wants some.
func profilesAddress(engine string) string {
	if engine == "postgres" {
		return "127.0.0.1:16061"
	}
	return "127.0.0.1:16060"
}

// flags are those of a server that is measured. Everybody comes from one network, so what limits one is off.
func (p *plan) flags(engine string) []string {
	flags := []string{"--starts-per-minute", "60000", "--limit-public", "off"}
	if p.profiles != "" {
		flags = append(flags, "--profiling", "--metrics-listen", profilesAddress(engine))
	}
	return flags
}

// profile begins to take a CPU profile of the server after a while, for as long as a cell is measured. What it returns
// waits for it.
func (s *server) profile(ctx context.Context, p *plan, c cell, after time.Duration) (wait func() error) {
	if p.profiles == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		time.Sleep(after)
		seconds := max(1, int(p.slice()/time.Second))
		file := strings.ReplaceAll(fmt.Sprintf("%s-%s-%s-%d", c.engine, c.op, c.protocol, c.callers), " ", "-")
		err := save(ctx, profilesAddress(c.engine), fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds),
			filepath.Join(p.profiles, file+".cpu"))
		if err == nil {
			err = save(ctx, profilesAddress(c.engine), "/debug/pprof/allocs", filepath.Join(p.profiles, file+".allocs"))
		}
		done <- err
	}()
	return func() error { return <-done }
}

func save(ctx context.Context, address, path, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return os.WriteFile(file, body, 0o600)
}
