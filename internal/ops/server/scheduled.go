package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/ops/backups"
	"github.com/signet-idm/signet/internal/ops/verification"
)

// settleBackups checks the settings of scheduled backups.
func (s *settled) settleBackups() error {
	switch {
	case s.BackupDirectory == "" && (s.BackupEvery != 0 || s.BackupKeep != 0 || s.BackupMaxAge != 0):
		return errors.New("--backup-every, --backup-keep and --backup-max-age need --backup-directory")
	case s.BackupDirectory == "":
		return nil
	case s.Database != "":
		return errors.New("--backup-directory is for the embedded database: back PostgreSQL up with its own tools (pg_basebackup and an archive of the WAL, or pgBackRest), see docs/operations/backup.md, and leave --backup-directory out")
	}
	if s.BackupEvery == 0 {
		s.BackupEvery = backups.DefaultEvery
	}
	if s.BackupKeep == 0 {
		s.BackupKeep = backups.DefaultKeep
	}
	switch {
	case s.BackupEvery < backups.MinEvery || s.BackupEvery > backups.MaxEvery:
		return fmt.Errorf("--backup-every must be between %s and %s", backups.MinEvery, backups.MaxEvery)
	case s.BackupKeep < 1 || s.BackupKeep > backups.MaxKeep:
		return fmt.Errorf("--backup-keep must be between 1 and %d", backups.MaxKeep)
	case s.BackupMaxAge != 0 && s.BackupMaxAge < s.BackupEvery:
		return errors.New("--backup-max-age must not be shorter than --backup-every: only one backup would be left")
	}
	return nil
}

// checkBackups finds out whether backups can be where they are to be.
func (s *Server) checkBackups() error {
	if s.config.BackupDirectory == "" {
		return nil
	}
	if err := outside(s.dir, s.config.BackupDirectory); err != nil {
		return fmt.Errorf("--backup-directory: %w", err)
	}
	return nil
}

// scheduleBackups gets ready to make backups beside the requests.
func (s *Server) scheduleBackups() error {
	c := s.config
	if c.BackupDirectory == "" {
		return nil
	}
	s.backups = &backups.Schedule{
		Directory: c.BackupDirectory,
		Every:     c.BackupEvery,
		Keep:      c.BackupKeep,
		MaxAge:    c.BackupMaxAge,
		Clock:     s.config.Clock,
		Log:       s.log,
		Make: func(ctx context.Context, path string) error {
			began := time.Now()
			report, err := backup(ctx, c.Config, path,
				backupOptions{master: &s.given, rest: engine.Resting(), strict: true})
			if err == nil {
				s.log.Info("backup written", "file", report.Path, "events", report.Events, "position", report.Position,
					"bytes", report.Size, "took", time.Since(began).Round(time.Millisecond).String())
			}
			return err
		},
	}
	return s.backups.Open(s.defaultOrg, s.metrics)
}

// beginSchedules begins what is done at intervals.
func (s *Server) beginSchedules() error {
	if s.backups != nil {
		s.stopWork = append(s.stopWork, background(s.backups.Run))
	}
	if s.config.VerifyEvery == 0 {
		return nil
	}
	s.verification = verification.New(s.store, s.store.Verify, s.store.CheckFile, s.config.VerifyEvery, s.log)
	s.stopWork = append(s.stopWork, background(s.verification.Run))
	return s.verification.Register(s.metrics)
}
