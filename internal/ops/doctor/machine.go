package doctor

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/signet-idm/signet/internal/base/disk"
	"github.com/signet-idm/signet/internal/ops/backups"
)

// What counts as little, slow and old.
const (
	littleDisk  = 2 << 30
	noDisk      = 256 << 20
	slowSync    = 50 * time.Millisecond
	stuckSync   = time.Second
	syncRounds  = 9
	certExpires = 21 * 24 * time.Hour
)

func checkDirectory(_ context.Context, p *patient) []Finding {
	switch {
	case p.dir == nil && isMissing(p.absent) && p.config.Database != "":
		return fine("there is no data directory here, which the database does not need")
	case p.dir == nil:
		return fail("Name the right directory with --data-dir, or create one with signet start.", "%v", p.absent)
	}
	info, err := os.Stat(p.config.DataDir)
	if err != nil {
		return fail("Let the user that runs signet read the data directory.", "%v", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return warn("Run chmod 700 on the data directory.",
			"other users of this machine can enter the data directory: its mode is %04o", info.Mode().Perm())
	}
	return fine("the data directory belongs to its owner alone")
}

func checkDisk(_ context.Context, p *patient) (found []Finding) {
	directories := []struct{ what, path string }{{"data directory", p.config.DataDir},
		{"backup directory", p.config.BackupDirectory}}
	for _, directory := range directories {
		if directory.path == "" || directory.path == p.config.DataDir && p.dir == nil {
			continue
		}
		free, err := disk.Free(directory.path)
		const do = "Make room, or move the directory to a larger disk. If the disk is full, nothing can be written."
		switch {
		case err != nil:
			found = append(found,
				fail("Create the directory, or mount its disk.", "the %s: %v", directory.what, err)...)
		case free < noDisk:
			found = append(found, fail(do, "the disk of the %s has %d MiB left", directory.what, free>>20)...)
		case free < littleDisk:
			found = append(found, warn(do, "the disk of the %s has %d MiB left", directory.what, free>>20)...)
		default:
			found = append(found, fine("the disk of the %s has %d GiB left", directory.what, free>>30)...)
		}
		kind, err := disk.FileSystem(directory.path)
		if err != nil {
			continue
		}
		switch kind {
		case "nfs", "cifs", "smb", "9p", "fuse":
			if directory.path == p.config.DataDir && p.config.Database == "" {
				found = append(found,
					warn("Put the data directory on a local disk, or use PostgreSQL.",
						"the embedded database is on a file system of the kind %s, which may not keep its promises about locks and syncs", kind)...)
			}
		case "tmpfs", "ramfs":
			found = append(found,
				warn("Put it on a disk.", "the %s is in memory (%s): it is lost with the machine",
					directory.what, kind)...)
		case "overlay":
			found = append(found,
				warn("Mount a volume there.", "the %s is in the layer of a container: it is lost with the container",
					directory.what)...)
		}
	}
	return found
}

// checkFsync measures how long the disk of the embedded database takes to make something durable: every change waits
// for that.
func checkFsync(_ context.Context, p *patient) []Finding {
	if p.config.Database != "" || p.dir == nil {
		return nil
	}
	took, err := measureSync(p.config.DataDir)
	if err != nil {
		return fail("Run signet doctor as the user that runs the server, and make room on the disk.",
			"the data directory cannot be written: %v", err)
	}
	return judgeSync(took)
}

func judgeSync(took time.Duration) []Finding {
	const do = "Every change waits for the disk. Use a disk with a faster sync (an SSD with power-loss protection), and find out what else writes to it."
	switch {
	case took >= stuckSync:
		return fail(do, "the disk takes %s for a sync", took.Round(time.Millisecond))
	case took >= slowSync:
		return warn(do, "the disk takes %s for a sync", took.Round(time.Millisecond))
	}
	return fine("the disk takes %s for a sync", took.Round(10*time.Microsecond))
}

// measureSync gives the median of some syncs.
func measureSync(directory string) (time.Duration, error) {
	f, err := os.CreateTemp(directory, "doctor-*.tmp")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var all []time.Duration
	for range syncRounds {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[syncRounds/2], nil
}

func checkBackup(_ context.Context, p *patient) []Finding {
	const seeDocs = "See docs/operations/backup.md."
	if p.config.Database != "" || p.settings == nil {
		return nil // checkDatabase says what PostgreSQL does
	}
	s := p.settings
	if s.BackupDirectory == "" {
		return warn("Set --backup-directory, or run signet backup at intervals. "+seeDocs, "no backups are scheduled")
	}
	now := p.Clock()
	newest, err := backups.Newest(s.BackupDirectory, now)
	switch {
	case err != nil:
		return fail("Create the directory, or mount its disk. "+seeDocs, "the backups cannot be listed: %v", err)
	case newest == nil && p.filled:
		return fail("Start the server, which makes one at once, and look for errors about backups in its log.",
			"there is no backup in %s", s.BackupDirectory)
	case newest == nil:
		return fine("there is nothing to back up yet")
	}
	if age := now.Sub(newest.Made); age > 2*s.BackupEvery {
		return fail("Look for errors about backups in the log of the server. If it was stopped, start it.",
			"the newest backup is %s old, although one is made every %s", ago(age), s.BackupEvery)
	}
	return fine("the newest backup is %s old", ago(now.Sub(newest.Made)))
}
