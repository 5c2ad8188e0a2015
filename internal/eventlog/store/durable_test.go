package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// slowDisk keeps nothing before it is told to.
type slowDisk struct {
	engine.Engine
	asked chan struct{}
	keep  chan error
}

func (d *slowDisk) Sync() error {
	d.asked <- struct{}{}
	if err := <-d.keep; err != nil {
		return err
	}
	return d.Engine.Sync()
}

// What the disk may yet lose is not for those who follow the log: they remember positions, and others would take the
// same ones after a loss of power.
func TestOnlyWhatIsOnTheDiskIsFollowed(t *testing.T) {
	db := testdb.New(t, testdb.SQLite)
	disk := &slowDisk{asked: make(chan struct{}), keep: make(chan error)}
	options := Options{Database: db.URL, Kinds: []event.Definition{oldThings}, Master: secret.NewMasterKey()}
	s, _, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Do(t.Context(), oldName("x_0", "0")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	options.wrap = func(e engine.Engine) engine.Engine { disk.Engine = e; return disk }
	if s, _, err = Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	follows := func(when string, want int64) {
		t.Helper()
		events, err := s.Events(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		position, err := s.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(events)) != want || position != want {
			t.Errorf("%s: %d events, position %d, want %d", when, len(events), position, want)
		}
	}
	follows("what was there before", 1)
	for i, failure := range []error{nil, errors.New("no")} {
		answered := make(chan error)
		go func() { answered <- s.Do(t.Context(), oldName("x_1", fmt.Sprint(i))) }()
		testkit.Receive(t, disk.asked, "the disk is to keep it")
		follows("committed, and not on the disk", int64(i)+1)
		if all, err := s.EventsOf(t.Context(), "x_1", 1, 10); err != nil || len(all) != i+1 {
			t.Errorf("the database has %d of them, %v", len(all), err)
		}
		disk.keep <- failure
		if err := testkit.Receive(t, answered, "the command is answered"); (err == nil) != (failure == nil) ||
			err != nil && errs.KindOf(err) != errs.Unavailable {
			t.Error(err)
		}
		follows("on the disk, as far as it kept them", 2)
	}
}
