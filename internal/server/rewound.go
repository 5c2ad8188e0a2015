package server

import (
	"strings"

	"github.com/signet-idm/signet/internal/store"
	"github.com/signet-idm/signet/internal/store/proof"
)

// rememberLog keeps the end of the log in the data directory of a node on PostgreSQL, so that a node that was restarted notices what a cluster has lost
// meanwhile. The embedded database is in that directory, and would be lost with it.
func (s *Server) rememberLog(options *store.Options) {
	if s.config.Database == "" {
		return
	}
	options.Remember = func(m proof.Mark) error { return s.dir.KeepLogHead(m.String() + "\n") }
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
}

// details is what the operator should know of a server that is ready.
func (s *Server) details() map[string]string {
	all := map[string]string{}
	if s.sender() == nil {
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
