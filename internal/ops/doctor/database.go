package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
	"github.com/signet-idm/signet/internal/eventlog/store/folding"
	"github.com/signet-idm/signet/internal/eventlog/store/migrations"
	"github.com/signet-idm/signet/internal/eventlog/store/schema"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/internal/ops/server"
)

const (
	oldPostgres  = 14_00_00 // the oldest version that its makers still look after
	largeWAL     = 1 << 30  // of the write-ahead log of SQLite
	largeFile    = 256 << 20
	clockWarns   = 2 * time.Second
	clockFails   = 30 * time.Second
	keyOverdue   = signing.Period + signing.Lead + 7*24*time.Hour
	oldWALMode   = "minimal"
	journalInUse = "wal"
)

func checkDatabase(ctx context.Context, p *patient) []Finding {
	switch {
	case errors.Is(p.away, server.ErrNoInstallation):
		return warn("Run signet start, which creates one, or name the right data directory with --data-dir.",
			"there is no installation here yet")
	case p.engine == nil && p.config.Database != "":
		return fail("Check --database, the network and whether PostgreSQL runs.", "%v", p.away)
	case p.engine == nil:
		return fail("Check --data-dir, and run signet doctor as the user that runs the server.", "%v", p.away)
	case p.config.Database == "":
		return checkSQLite(ctx, p)
	}
	found, err := checkPostgres(ctx, p)
	if err != nil {
		return fail("Check what PostgreSQL says in its log.", "the settings of PostgreSQL cannot be read: %v", err)
	}
	return found
}

func checkSQLite(ctx context.Context, p *patient) []Finding {
	var mode string
	if err := p.engine.Query(ctx, "PRAGMA journal_mode", nil,
		func(scan engine.Scanner) error { return scan(&mode) }); err != nil {
		return fail("Run signet doctor as the user that runs the server.", "the database cannot be read: %v", err)
	}
	if mode != journalInUse {
		return fail("Start the server once, which sets it. Do not open the database with other programs.",
			"the journal mode of the database is %s, not %s", mode, journalInUse)
	}
	if info, err := os.Stat(filepath.Join(p.config.DataDir, "signet.db-wal")); err == nil && info.Size() > largeWAL {
		return warn("Find the program that keeps the database open: a backup, or a tool that reads it. Restart the server if there is none.", "the write-ahead log has %d MiB: something reads the database and does not end", info.Size()>>20)
	}
	return append(append(fine("SQLite, with a write-ahead log that the server syncs itself"), checkLost(ctx, p)...),
		checkFile(ctx, p)...)
}

// checkLost compares the log with what the last server has seen of it. A server that runs has done that itself, and
// says so.
func checkLost(ctx context.Context, p *patient) []Finding {
	if p.dir == nil || !p.filled {
		return nil
	}
	seen, err := p.dir.LogEnd() // before the database: a server may be writing
	if err != nil {
		return warn("Remove log-end from the data directory. The server makes a new one.",
			"the end of the log that the server has seen cannot be read: %v", err)
	}
	var end int64
	if err := p.engine.Query(ctx, "SELECT position FROM log_head WHERE id = 1", nil,
		func(scan engine.Scanner) error { return scan(&end) }); err != nil {
		return fail("Check that the database is one of Signet.", "the end of the log cannot be read: %v", err)
	}
	if seen > end {
		return fail(lostDo, "the database has lost the last %d events: the server had written up to position %d, and the log ends at %d", seen-end, seen, end)
	}
	return nil
}

const lostDo = "Copy the data directory as it is, and see docs/operations/faults.md."

// checkFile looks for damage in the file. A large one takes long: there the last verification by the server counts.
func checkFile(ctx context.Context, p *patient) []Finding {
	if p.verification != nil && p.verification.Damage != "" && !p.small() {
		return fail(mend, "%s", p.verification.Damage)
	}
	if !p.small() {
		return fine("the file is large: signet verify, and the server's own verification, look for damage in it")
	}
	switch err := p.engine.Check(ctx, nil); {
	case engine.IsDamage(err):
		return fail(mend, "%v", err)
	case err != nil:
		return warn("Run signet verify.", "the database file could not be checked: %v", err)
	}
	return fine("the database file and its indexes are whole")
}

var mend = strings.ToUpper(engine.Mend[:1]) + engine.Mend[1:] + "."

// small tells whether all of the database can be read in a few seconds.
func (p *patient) small() bool {
	info, err := os.Stat(filepath.Join(p.config.DataDir, "signet.db"))
	return err == nil && info.Size() <= largeFile
}

// checkPostgres looks at the version and the settings that decide whether what was answered is durable.
func checkPostgres(ctx context.Context, p *patient) (found []Finding, err error) {
	set := map[string]string{}
	err = p.engine.Query(ctx, "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'server_version_num', 'server_version', 'max_connections', "+
		"'superuser_reserved_connections', 'wal_level', 'archive_mode')", nil, func(scan engine.Scanner) error {
		var name, value string
		err := scan(&name, &value)
		set[name] = value
		return err
	})
	if err != nil {
		return nil, err
	}
	number := func(name string) int { n, _ := strconv.Atoi(set[name]); return n }
	if number("server_version_num") < oldPostgres {
		found = append(found, warn("Upgrade PostgreSQL.", "PostgreSQL %s gets no more fixes", set["server_version"])...)
	} else {
		found = append(found, fine("PostgreSQL %s", set["server_version"])...)
	}
	for _, name := range []string{"fsync", "full_page_writes"} {
		if set[name] != "on" {
			found = append(found,
				fail("Set "+name+" = on in postgresql.conf, and reload it.",
					"%s is %s: a crash of the machine can destroy the database", name, set[name])...)
		}
	}
	if set["synchronous_commit"] == "off" {
		found = append(found, fail("Set synchronous_commit = on in postgresql.conf (and for this user and database), and reload it.", "synchronous_commit is off: changes that were answered can be lost in a crash")...)
	}
	pool, err := engine.PoolSize(p.config.Database)
	if room := number("max_connections") - number("superuser_reserved_connections"); err == nil && pool > room {
		found = append(found, warn("Raise max_connections, or set pool_max_conns in --database.",
			"a node makes up to %d connections, but PostgreSQL has room for %d", pool, room)...)
	} else if err == nil {
		found = append(found, fine("a node makes up to %d of the %d connections that PostgreSQL has room for",
			pool, room)...)
	}
	switch {
	case set["wal_level"] == oldWALMode:
		found = append(found, warn("Set wal_level = replica in postgresql.conf, and restart PostgreSQL. See docs/operations/backup.md.", "wal_level is minimal: no base backup and no recovery to a point in time is possible")...)
	case set["archive_mode"] == "off":
		found = append(found, fine("PostgreSQL does not archive its WAL: for a recovery to a point in time, something else has to")...)
	default:
		archived, err := checkArchiver(ctx, p)
		if err != nil {
			return nil, err
		}
		found = append(found, archived...)
	}
	return found, nil
}

// checkArchiver tells whether PostgreSQL gets its WAL archived.
func checkArchiver(ctx context.Context, p *patient) (found []Finding, err error) {
	var failing bool
	var archived int64
	err = p.engine.Query(ctx, "SELECT coalesce(last_failed_time > coalesce(last_archived_time, last_failed_time - interval '1 second'), false), archived_count FROM pg_stat_archiver", nil,
		func(scan engine.Scanner) error { return scan(&failing, &archived) })
	if failing {
		return fail("Look into the log of PostgreSQL for what archive_command says. Until it works, WAL fills the disk, and there is no recovery to a point in time.", "PostgreSQL fails to archive its WAL"), err
	}
	return fine("PostgreSQL has archived %d files of WAL", archived), err
}

func checkMigrations(ctx context.Context, p *patient) []Finding {
	if p.engine == nil || !p.filled {
		return nil
	}
	have, err := schema.Version(ctx, p.engine)
	known, errs := migrations.All()
	if err = errors.Join(err, errs); err != nil {
		return fail("Check that the database is one of Signet.", "the version of the schema cannot be read: %v", err)
	}
	switch want := len(known); {
	case have < want:
		return warn("Run signet migrate, or start this version: both do it. See docs/operations/upgrade.md.",
			"%d migrations are pending: the schema has version %d, this program wants %d", want-have, have, want)
	case have > want:
		return warn("Use the newer program for all nodes.",
			"the schema has version %d, this program knows %d: a newer program has been here", have, want)
	}
	behind := int64(0)
	folder := folding.Folder{Engine: p.engine}
	for _, k := range model.Kinds {
		n, err := folder.CountBehind(ctx, k)
		if err != nil {
			return fail("Check that the database is one of Signet.", "the shapes of objects cannot be read: %v", err)
		}
		behind += n
	}
	if behind > 0 {
		return warn("Upgrade the last node of the version before; then the others do it in the background. See docs/operations/upgrade.md.", "the schema is up to date, but %d objects do not have their new shape yet", behind)
	}
	return fine("the schema is up to date, and every object has its shape")
}

// checkHashes tells whether the hashes of passwords are sealed.
func checkHashes(ctx context.Context, p *patient) []Finding {
	if p.engine == nil || !p.filled {
		return nil
	}
	switch plain, err := store.CountPlainHashes(ctx, p.engine); {
	case err != nil:
		return fail("Check that the database is one of Signet.", "the password hashes cannot be counted: %v", err)
	case plain > 0:
		return warn("Upgrade the last node of the version before; then the others seal them in the background. See docs/operations/master-key.md.", "%d password hashes are not sealed yet", plain)
	}
	return fine("every password hash is sealed")
}

// checkClock compares the clock of this machine with that of the database, and with the last event.
func checkClock(ctx context.Context, p *patient) []Finding {
	if p.engine == nil || !p.filled {
		return nil
	}
	const do = "Synchronize the clocks of all machines (NTP, chrony). Codes, sessions and leases depend on them."
	var last int64
	err := p.engine.Query(ctx, "SELECT time FROM events ORDER BY position DESC LIMIT 1", nil,
		func(scan engine.Scanner) error { return scan(&last) })
	if err != nil {
		return fail("Check that the database is one of Signet.", "the last event cannot be read: %v", err)
	}
	if ahead := event.Time(last).Sub(p.Clock()); ahead > clockWarns {
		return fail(do, "the last event is %s in the future: the clock of this machine is behind, or that of another node was ahead", ago(ahead))
	}
	if p.config.Database == "" {
		return fine("no event is in the future")
	}
	began := p.Clock()
	var micros int64
	err = p.engine.Query(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", nil,
		func(scan engine.Scanner) error { return scan(&micros) })
	if err != nil {
		return fail("Check what PostgreSQL says in its log.", "the clock of the database cannot be read: %v", err)
	}
	return judgeClock("the database", event.Time(micros).Sub(began), p.Clock().Sub(began), do)
}

// judgeClock judges how far another clock is ahead, as far as that can be told after a call that took some time.
func judgeClock(whose string, ahead, took time.Duration, do string) []Finding {
	off := max(ahead-took, -ahead, 0)
	switch {
	case off >= clockFails:
		return fail(do, "the clock of this machine and that of %s differ by %s", whose, ago(off))
	case off >= clockWarns:
		return warn(do, "the clock of this machine and that of %s differ by %s", whose, ago(off))
	}
	return fine("the clock of this machine is that of %s", whose)
}

func checkKeys(_ context.Context, p *patient) (found []Finding) {
	file := p.config.MasterKeyFile
	if file == "" && p.config.MasterKey == "" && p.dir != nil {
		file, _ = p.dir.KeyPaths()
	}
	if file != "" && p.filled {
		if _, _, err := secret.LoadOrCreateKeyFile(file, false); err != nil {
			return fail("Put the master key there, with mode 0600 (or 0400) and the user that runs the server as its owner: chmod 600. Without the key, no server starts.", "%v", err)
		}
	}
	if p.engine == nil || !p.filled {
		return nil
	}
	if p.keyProblem != nil {
		return fail("Use the master key of this installation. See docs/operations/master-key.md.", "%v", p.keyProblem)
	}
	found = fine("the master key fits the database, and decrypts its root key")
	now := p.Clock()
	signs := signing.Signs(p.keys, signing.ES256, event.Micros(now))
	if signs == nil {
		return append(found, fail("Start the server, which makes one, and look for errors about signing keys in its log.", "no key signs tokens")...)
	}
	age := now.Sub(event.Time(signs.Made))
	if age > keyOverdue {
		return append(found, warn("Start the server, which rotates it, and look for errors about signing keys in its log.", "the signing key is %s old, and should have been rotated", ago(age))...)
	}
	return append(found, fine("the signing key is %s old", ago(age))...)
}

func checkVerification(_ context.Context, p *patient) []Finding {
	if p.engine == nil || !p.filled || p.keyProblem != nil || p.settings == nil {
		return nil
	}
	every, r := p.settings.VerifyEvery, p.verification
	const do = "Look for warnings about the verification in the log of the server, or run signet verify."
	switch {
	case r != nil && r.Finding != "":
		return fail("Copy the database as it is, and see docs/operations/verify.md.",
			"the log was changed: %s", r.Finding)
	case every == 0:
		return warn("Leave --verify-every at its default, or run signet verify every day.",
			"the server does not verify the log")
	case r == nil:
		return fine("the log will be verified when the server has run for %s", every)
	case r.Late(event.Micros(p.Clock()), every) && r.Success == 0:
		return warn(do, "the log was never verified, although that is due every %s", every)
	case r.Late(event.Micros(p.Clock()), every):
		return warn(do, "the log was last verified %s ago, although that is due every %s",
			ago(p.Clock().Sub(event.Time(r.Success))), every)
	case r.Success == 0:
		return fine("the log will be verified when the server has run for %s", every)
	}
	return fine("the log was verified %s ago, up to position %d", ago(p.Clock().Sub(event.Time(r.Success))), r.Position)
}
