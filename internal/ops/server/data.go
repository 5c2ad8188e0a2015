package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/internal/life/setup"
)

// openDirectory opens the data directory and keeps other servers out of it.
func (s *Server) openDirectory() (err error) {
	if s.dir, err = datadir.Open(s.config.DataDir, true); err != nil {
		return err
	}
	if err := s.dir.Lock(); err != nil {
		return err
	}
	return s.checkBackups()
}

// openStore finds the master key and opens the database with it, and gives the root key. Only a start may find the
// database empty.
func (s *Server) openStore(ctx context.Context, starting, readOnly bool) (secret.MasterKey, error) {
	var none secret.MasterKey
	database := s.config.Database
	if database == "" {
		path, err := s.dir.Database()
		if err != nil {
			return none, err
		}
		database = path
		if readOnly {
			err = s.dir.Whole()
		} else {
			err = s.dir.Mend(ctx)
		}
		if err != nil {
			return none, err
		}
	}
	options := store.Options{
		Database: database,
		Kinds:    model.Kinds,
		Log:      s.log,
		ReadOnly: readOnly,
		Clock:    s.config.Clock,
		Traced:   s.traces != nil,
	}
	// Before the look: another node's first start writes it only after the database is filled.
	handedOver := starting && s.handedOver()
	look, err := s.lookAt(ctx, options, starting)
	if err != nil {
		return none, err
	}
	defer look.Close()
	filled := look.Filled
	if !filled && !starting {
		return none, ErrNoInstallation
	}
	if look.MovedTo != "" && !readOnly {
		return none, goneTo(look.MovedTo)
	}
	if !filled {
		if err := s.besideOthers(handedOver); err != nil {
			return none, err
		}
	}
	options.Look = look
	if starting {
		s.rememberLog(&options, filled)
		options.Stats = s.gauges.store
	}
	if options.Master, err = s.masterKey(ctx, database, filled); err != nil {
		return none, err
	}
	if s.store, _, err = store.Open(ctx, options); err != nil {
		return none, err
	}
	s.given = options.Master
	return s.store.RootKey(), nil
}

// firstStart creates the installation where there is none, and gives the default organization.
func (s *Server) firstStart(ctx context.Context, setUp setup.Setup) (defaultOrg string, err error) {
	path := s.dir.FirstAdminPath(s.config.FirstAdminFile)
	handedOver := s.handedOver()
	inst, err := installation.Read(ctx, s.store)
	if err != nil {
		return "", err
	}
	if inst == nil {
		if err := s.besideOthers(handedOver); err != nil { // a start that was cut off has left an empty database
			return "", err
		}
		var file datadir.FirstAdmin
		_, err := setUp.First(ctx, func(f setup.FirstAdmin) error {
			file = datadir.FirstAdmin{
				URL:           s.config.ExternalURL,
				OrgID:         f.OrgID,
				UserID:        f.UserID,
				LoginName:     f.LoginName,
				Password:      f.Password,
				ServiceUserID: f.ServiceUserID,
				Token:         f.Token,
			}
			return datadir.PrepareFirstAdmin(path, file)
		})
		switch {
		case errors.Is(err, setup.ErrAlreadySetUp): // another node was faster, and has the file
		case err != nil:
			return "", fmt.Errorf("first start: %w", err)
		default:
			s.FirstAdmin, s.FirstAdminPath = &file, path
		}
		if inst, err = installation.Read(ctx, s.store); err != nil {
			return "", err
		}
	}
	return inst.Data.DefaultOrg, datadir.PublishFirstAdmin(path, inst.Data.DefaultOrg)
}
