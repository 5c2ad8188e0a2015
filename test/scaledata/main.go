// Command scaledata fills a data directory with many organizations and users, for whoever wants to see or measure the
// program at full size:
//
//	go run ./test/scaledata -users 1000000 -orgs 10000 -data-dir DIR [-database postgres://…]
//	signet start --data-dir DIR [--database postgres://…]
//
// An empty directory is started once first, so that it has its administrator (first-admin.json). Organizations and
// users are made by the commands that the API uses, many in each transaction. The same numbers give the same people.
// The first organization, "Scale 0", has an eighth of all users; the others share the rest. The people have no
// passwords.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
)

func main() {
	users := flag.Int("users", 1_000_000, "how many users to add")
	orgs := flag.Int("orgs", 10_000, "how many organizations to add")
	dir := flag.String("data-dir", "", "the data directory; made if it is not there")
	database := flag.String("database", "", "postgres:// address; SQLite in the data directory if it is empty")
	binary := flag.String("binary", "",
		"the signet program for the first start; built from this repository if it is empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *dir == "" || *users < 1 || *orgs < 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/scaledata -data-dir DIR [-users N] [-orgs N] [-database URL]")
		os.Exit(2)
	}
	if err := run(ctx, *users, *orgs, *dir, *database, *binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, users, orgs int, dir, database, binary string) (err error) {
	if err := firstStart(ctx, dir, database, binary); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "master.key"))
	if err != nil {
		return err
	}
	master, err := secret.ParseMasterKey(text)
	if err != nil {
		return err
	}
	if database == "" {
		database = filepath.Join(dir, "signet.db")
	}
	st, _, err := store.Open(ctx,
		store.Options{Database: database, Kinds: model.Kinds, Master: master,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	begun := time.Now()
	ids := make([]string, orgs)
	err = parts(ctx, "organizations", orgs, func(from, to int) error { return addOrgs(ctx, st, ids, from, to) })
	if err != nil {
		return err
	}
	if err := parts(ctx, "users", users,
		func(from, to int) error { return addUsers(ctx, st, ids, users, from, to) }); err != nil {
		return err
	}
	fmt.Printf("%d organizations and %d users in %s; the first organization is %s\n", orgs, users,
		time.Since(begun).Round(time.Second), ids[0])
	return nil
}

// firstStart lets the program make what every installation has.
func firstStart(ctx context.Context, dir, database, binary string) error {
	if _, err := os.Stat(filepath.Join(dir, "first-admin.json")); err == nil {
		return nil
	}
	if binary == "" {
		made, err := os.MkdirTemp("", "scaledata")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		binary = filepath.Join(made, "signet")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary,
			"./cmd/signet").CombinedOutput(); err != nil {
			return fmt.Errorf("building signet: %w\n%s", err, out)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	listener.Close()
	args := []string{"start", "--data-dir", dir, "--listen", address}
	if database != "" {
		args = append(args, "--database", database)
	}
	server := exec.Command(binary, args...)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("signet start ended by itself: %w", err)
		case <-ctx.Done():
		case <-look.C:
			// a server that is stopped before it is ready has failed
			answer, err := http.Get("http://" + address + "/readyz")
			if err != nil {
				continue
			}
			if answer.Body.Close(); answer.StatusCode != http.StatusOK {
				continue
			}
		}
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return errors.Join(ctx.Err(), <-ended)
	}
}

// parts does something for all of a number in parts, several at a time, and says how far it has come. When one part
// fails, no other begins.
func parts(ctx context.Context, what string, total int, do func(from, to int) error) error {
	const (
		size    = 100
		workers = 8
	)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next, done atomic.Int64
	var group sync.WaitGroup
	begun := time.Now()
	for range workers {
		group.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(size)) - size
				if from >= total {
					return
				}
				to := min(from+size, total)
				if err := do(from, to); err != nil {
					stop(err)
					return
				}
				if n := done.Add(int64(to - from)); n/50_000 != (n-int64(to-from))/50_000 {
					fmt.Printf("%d %s, %.0f a second\n", n, what, float64(n)/time.Since(begun).Seconds())
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func addOrgs(ctx context.Context, st event.Store, ids []string, from, to int) error {
	c := event.Command{Origin: event.Origin{Actor: event.System}}
	for at := from; at < to; at++ {
		ids[at] = org.Kind.NewID()
		c.Create = append(c.Create, org.Kind.Ref(ids[at]))
		c.Claims = append(c.Claims, org.DomainClaim(domainOf(at)))
	}
	c.Decide = func(tx *event.Tx) error {
		for at := from; at < to; at++ {
			if _, err := org.Add(tx, ids[at], orgName(at), []string{domainOf(at)}); err != nil {
				return err
			}
		}
		return nil
	}
	return st.Do(ctx, c)
}

func addUsers(ctx context.Context, st event.Store, orgs []string, total, from, to int) error {
	people, ids, of := make([]user.NewHuman, to-from), make([]string, to-from), make([]string, to-from)
	c := event.Command{Origin: event.Origin{Actor: event.System}}
	for i := range people {
		at := orgOf(from+i, total, len(orgs))
		people[i], ids[i], of[i] = person(from+i, at), user.Kind.NewID(), orgs[at]
		c.Create = append(c.Create, user.Kind.Ref(ids[i]))
		c.Claims = append(c.Claims, user.NameClaim(of[i], syntax.NameKey(people[i].UserName)))
	}
	c.Decide = func(tx *event.Tx) error {
		for i := range people {
			if _, err := user.AddHuman(tx, ids[i], of[i], &people[i]); err != nil {
				return fmt.Errorf("%s: %w", people[i].UserName, err)
			}
		}
		return nil
	}
	return st.Do(ctx, c)
}
