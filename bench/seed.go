package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
)

// How many users the organizations have in which users are listed.
const (
	fewUsers  = 1_000
	someUsers = 24_000
	manyUsers = 200_000
)

// Every other user has one of these words in the display name, and five in each organization have both.
const (
	oddWord  = "nordstern"
	evenWord = "suedwind"
	bothOf   = 5
)

// displayName of the user at a place of so many.
func displayName(at, total int) string {
	words := oddWord
	if at%2 == 0 {
		words = evenWord
	}
	if at%(total/bothOf) == 0 {
		words = oddWord + " " + evenWord
	}
	return fmt.Sprintf("Johanna Beispiel %06d %s", at, words)
}

// openStore opens the server's database. The server must not run.
func (s *subject) openStore(ctx context.Context) (*store.Store, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, "master.key"))
	if err != nil {
		return nil, err
	}
	master, err := secret.ParseMasterKey(text)
	if err != nil {
		return nil, err
	}
	database := s.database
	if database == "" {
		database = filepath.Join(s.dir, "signet.db")
	}
	st, _, err := store.Open(ctx,
		store.Options{Database: database, Kinds: model.Kinds, Master: master,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	return st, err
}

// seed adds users to the organizations of those who list, straight through the store. The server must not run.
func (s *subject) seed(ctx context.Context) (err error) {
	st, err := s.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	w := s.world
	if err := w.seedGroups(ctx, st); err != nil {
		return err
	}
	groups := func(at int) (in []string) {
		switch {
		case at < joining:
			return nil
		case at < joining+smallGroup:
			return []string{w.small, w.large}
		case at < joining+largeGroup:
			return []string{w.large}
		}
		return nil
	}
	none := func(int) []string { return nil }
	if err := errors.Join(addUsers(ctx, st, w.few.org, fewUsers, none),
		addUsers(ctx, st, w.some.org, someUsers, none)); err != nil {
		return err
	}
	if err := addUsers(ctx, st, w.many.org, manyUsers, groups); err != nil {
		return err
	}
	joiners, _, err := user.Kind.List(ctx, st,
		event.Query{Org: w.many.org, By: "user_name", Prefix: "user000", Limit: joining})
	for _, u := range joiners {
		w.joiners = append(w.joiners, u.ID)
	}
	return err
}

// addUsers adds users, many in each transaction, with the groups that the one at a place is in.
func addUsers(ctx context.Context, st event.Store, org string, total int, groups func(at int) []string) error {
	const (
		perCommand = 100
		hands      = 4
	)
	starts := make(chan int, total/perCommand)
	for at := 0; at < total; at += perCommand {
		starts <- at
	}
	close(starts)
	failed := make(chan error, hands)
	var group sync.WaitGroup
	for range hands {
		group.Go(func() {
			for at := range starts {
				if err := addSome(ctx, st, org, at, perCommand, total, groups); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

func addSome(ctx context.Context, st event.Store, org string, at, count, total int,
	groups func(at int) []string) error {
	people := make([]user.NewHuman, count)
	ids := make([]string, count)
	c := event.Command{Origin: event.Origin{Actor: event.System}}
	for i := range people {
		name := fmt.Sprintf("user%06d", at+i)
		people[i] = user.NewHuman{UserName: name, Email: name + "@example.org", EmailVerified: true,
			Profile: user.Profile{FirstName: "Johanna", LastName: "Beispiel", DisplayName: displayName(at+i, total),
				PreferredLanguage: "de-CH"}}
		ids[i] = user.Kind.NewID()
		c.Write = append(c.Write, user.Kind.Ref(ids[i]))
		c.Claims = append(c.Claims, user.NameClaim(org, syntax.NameKey(name)))
	}
	c.Decide = func(tx *event.Tx) error {
		for i := range people {
			u, err := user.AddHuman(tx, ids[i], org, &people[i])
			if err != nil {
				return err
			}
			for _, id := range groups(at + i) {
				if err := u.Append(user.GroupJoined{Org: org, Group: id}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return st.Do(ctx, c)
}
