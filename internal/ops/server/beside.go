package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
)

// handedOver tells whether a first start has left the credentials of its administrator where this one would write them.
func (s *Server) handedOver() bool {
	info, err := os.Stat(s.dir.FirstAdminPath(s.config.FirstAdminFile))
	return err == nil && info.Mode().IsRegular()
}

// besideOthers refuses a first start where the files of another installation are: its administrator's credentials would
// be written over, or an operator who meant to take the data along would be left with nothing in it.
func (s *Server) besideOthers(handedOver bool) error {
	if s.config.Database == "" {
		if err := s.dir.CutOff(); err != nil {
			return err
		}
	} else if s.dir.HasDatabase() {
		return fmt.Errorf("the data directory %s contains an installation, but the PostgreSQL database is empty, so nothing was changed: "+
			"to take the installation along, run signet move --to with this database; for a new installation, use another --data-dir", s.config.DataDir)
	}
	if !handedOver {
		return nil
	}
	path := s.dir.FirstAdminPath(s.config.FirstAdminFile)
	if s.config.Database == "" {
		return fmt.Errorf("%s belongs to another installation, and there is no database here, so nothing was changed: start with the --database of that installation; "+
			"to take it along, run signet move --database … --to %s; for a new installation, use another --data-dir, or move the file away", path, s.config.DataDir)
	}
	return fmt.Errorf("%s belongs to another installation, but this PostgreSQL database is empty, so nothing was changed: check --database; "+
		"to take that installation along, run signet move; for a new installation, use another --data-dir, or move the file away", path)
}

// goneTo is what a database says from which the installation was moved away.
func goneTo(where string) error {
	return fmt.Errorf("this installation was moved to %s: use that. What is here is as old as the move; "+
		"to use it all the same, give up what has changed there and run signet move --undo", where)
}

// UndoMove makes a database usable again from which the installation was moved away, and tells where that had gone.
func UndoMove(ctx context.Context, c Config) (where string, err error) {
	if err := c.checkDatabase(); err != nil {
		return "", err
	}
	database := c.Database
	if database == "" {
		dir, err := datadir.Open(c.DataDir, false)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
		if err := dir.Lock(); err != nil {
			return "", err
		}
		if database, err = dir.Database(); err != nil {
			return "", err
		}
	}
	look, err := store.LookAt(ctx, store.Options{Database: database, ReadOnly: true})
	if err != nil {
		return "", err
	}
	if err := look.Close(); err != nil {
		return "", err
	}
	if look.MovedTo == "" {
		return "", errors.New("nothing was moved from here, so there is nothing to undo")
	}
	return store.UndoMove(ctx, database)
}
