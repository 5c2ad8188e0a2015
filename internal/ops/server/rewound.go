package server

import (
	"strings"

	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/proof"
)

// rememberLog keeps the end of the log in the data directory, so that a node that was restarted notices what the
// database has lost meanwhile: what a cluster of PostgreSQL has confirmed and lost, or what a damaged write-ahead log
// or an older file in the place of the embedded database has taken away. filled tells that there is an installation: a
// new one has lost nothing.
func (s *Server) rememberLog(options *store.Options, filled bool) {
	embedded := s.config.Database == ""
	options.Remember = func(m proof.Mark) error { return s.dir.KeepLogHead(m.String() + "\n") }
	if embedded && !filled {
		if err := s.dir.ForgetLog(); err != nil {
			s.log.Warn("what is known of an earlier log could not be removed from the data directory", "error", err)
			return
		}
	}
	text, err := s.dir.LogHead()
	if err == nil && text != nil {
		var mark proof.Mark
		if err = mark.UnmarshalText([]byte(strings.TrimSpace(string(text)))); err == nil {
			options.Remembered = &mark
		}
	}
	if err != nil {
		s.log.Warn("the end of the log that this node has seen cannot be read from log-head in the data directory", "error", err)
	}
	if embedded {
		s.rememberEnd(options)
	}
}

// rememberEnd does that for the embedded database to the last event that was answered.
func (s *Server) rememberEnd(options *store.Options) {
	var err error
	if options.RememberedEnd, err = s.dir.LogEnd(); err != nil {
		s.log.Warn("the end of the log cannot be read from log-end in the data directory", "error", err)
	}
	keep, err := s.dir.OpenLogEnd()
	if err != nil {
		s.log.Warn("the end of the log cannot be written to log-end in the data directory", "error", err)
		return
	}
	failing := false
	options.RememberEnd = func(position int64) {
		err := keep(position)
		if err != nil && !failing {
			s.log.Warn("the end of the log cannot be written to log-end in the data directory", "error", err)
		}
		failing = err != nil
	}
}

// details is what the operator should know of a server that is ready.
func (s *Server) details() map[string]string {
	all := map[string]string{}
	if s.mails.sender == nil {
		all["mail"] = "not configured"
	}
	if s.store.Lost() > 0 {
		all["log"] = "the database has lost events"
	}
	if s.backups != nil && s.backups.Failing() {
		all["backup"] = "the last scheduled backup failed"
	}
	if s.verification != nil {
		if said := s.verification.Detail(); said != "" {
			all["verification"] = said
		}
	}
	return all
}
