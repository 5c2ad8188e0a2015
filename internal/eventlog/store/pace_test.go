package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

func TestACommandThatWouldComeTooLateIsRefusedAtOnce(t *testing.T) {
	s, _, err := Open(t.Context(), Options{Database: testdb.New(t, testdb.SQLite).URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.pace.Moved(1, 24*time.Hour)
	running, resume, answers := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	blocking := func(wait <-chan struct{}) event.Command {
		return event.Command{Decide: func(*event.Tx) error { close(running); <-wait; return nil }}
	}
	go func() { answers <- s.Do(t.Context(), blocking(resume)) }()
	<-running
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { answers <- s.Do(ctx, event.Command{Decide: func(*event.Tx) error { return nil }}) }() // nobody is ahead of it
	testkit.Await(t, "one waits", func() bool { return len(s.queue) == 1 })
	if err := s.Do(ctx, oldName("x_1", "a")); !errors.Is(err, fairqueue.ErrBusy) || ctx.Err() != nil {
		t.Errorf("behind a command that takes hours: %v", err)
	}
	close(resume)
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

func TestACommandWhoseDeadlinePassesInTheLineIsNotBegun(t *testing.T) {
	s, _, err := Open(t.Context(), Options{Database: testdb.New(t, testdb.SQLite).URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	running, resume, answer := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		answer <- s.Do(t.Context(), event.Command{Decide: func(*event.Tx) error { close(running); <-resume; return nil }})
	}()
	<-running
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Do(ctx, event.Command{Decide: func(*event.Tx) error { t.Error("it ran"); return nil }}); !errors.Is(err, fairqueue.ErrBusy) {
		t.Errorf("the answer to who may come back at once: %v", err)
	}
	close(resume)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}
