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
	s, _, err := Open(t.Context(),
		Options{Database: testdb.New(t, testdb.SQLite).URL, Kinds: []event.Definition{oldThings},
			Master: secret.NewMasterKey()})
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
	testkit.Receive(t, running, "the first command runs")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	// nobody is ahead of it
	go func() { answers <- s.Do(ctx, event.Command{Decide: func(*event.Tx) error { return nil }}) }()
	testkit.Await(t, "one waits", func() bool { return len(s.queue) == 1 })
	if err := s.Do(ctx, oldName("x_1", "a")); !errors.Is(err, fairqueue.ErrBusy) || ctx.Err() != nil {
		t.Errorf("behind a command that takes hours: %v", err)
	}
	close(resume)
	for range 2 {
		if err := testkit.Receive(t, answers, "a command is answered"); err != nil {
			t.Error(err)
		}
	}
}

// overdue is a context whose deadline passes when the test says so.
type overdue struct {
	context.Context
	passed chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.passed }

func (o overdue) Err() error {
	select {
	case <-o.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestACommandWhoseDeadlinePassesInTheLineIsNotBegun(t *testing.T) {
	s, _, err := Open(t.Context(),
		Options{Database: testdb.New(t, testdb.SQLite).URL, Kinds: []event.Definition{oldThings},
			Master: secret.NewMasterKey()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	running, resume, answer, late := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		answer <- s.Do(t.Context(),
			event.Command{Decide: func(*event.Tx) error { close(running); <-resume; return nil }})
	}()
	testkit.Receive(t, running, "the first command runs")
	ctx := overdue{t.Context(), make(chan struct{})}
	go func() {
		late <- s.Do(ctx, event.Command{Decide: func(*event.Tx) error { t.Error("it ran"); return nil }})
	}()
	testkit.Await(t, "it is in the line", func() bool { return len(s.queue) == 1 })
	close(ctx.passed)
	if err := testkit.Receive(t, late, "its deadline passes"); !errors.Is(err, fairqueue.ErrBusy) {
		t.Errorf("the answer to who may come back at once: %v", err)
	}
	close(resume)
	if err := testkit.Receive(t, answer, "the first command is answered"); err != nil {
		t.Error(err)
	}
}
