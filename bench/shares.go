package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/access"
)

// What one organization may cost the others, and the database: see docs/decisions/0057.
const (
	sharesSlower    = 5.0   // times, of the median beside a quiet server
	sharesPerMember = 600.0 // bytes for a member whose roles change
	sharesNothing   = 50e3  // bytes of a request that changes nothing for the members
	sharesMembers   = 1_000 // of the group
	sharesRequests  = 20    // for the bytes
)

// measureShares has 64 callers of one organization change the roles of a group of 1,000 members, and times what
// somebody of another organization does meanwhile. base is another build of the program to compare with; empty: none.
func measureShares(ctx context.Context, p *plan, binary, base, temporary string) (passed bool, err error) {
	type build struct{ name, binary string }
	builds := []build{{"this", binary}}
	if base != "" {
		builds = append([]build{{"base", base}}, builds...)
	}
	passed = true
	var rows []string
	for _, engine := range p.engines {
		for _, b := range builds {
			got, err := sharesOf(ctx, p, engine, b.binary, filepath.Join(temporary, "shares-"+engine+"-"+b.name))
			if err != nil {
				return false, fmt.Errorf("%s, %s: %w", engine, b.name, err)
			}
			if b.name == "this" {
				passed = passed && got.holds()
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |", engine, b.name, got))
		}
	}
	fmt.Printf("\n| engine | build | write, quiet: p50 | beside: p50, p99, max | times | list, quiet: p50 | beside: p50, p99, max | times | changes of roles/s | refused/s | alone: one change | bytes per member | bytes if nothing changes |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Println(row)
	}
	fmt.Printf("\n%d callers of one organization set the roles of one group of %d members; one caller of another organization writes its profile, one lists 50 users. At most %.0f times, %.0f bytes per member, %.0f bytes if nothing changes.\n",
		manyCallers, sharesMembers, sharesSlower, sharesPerMember, sharesNothing)
	return passed, nil
}

// neighbour is how somebody of another organization fares.
type neighbour struct{ write, list []time.Duration }

type shares struct {
	quiet, beside             neighbour
	changes, refused          float64 // per second
	alone                     time.Duration
	perMember, nothingChanges float64 // bytes
}

func slower(quiet, beside []time.Duration) float64 {
	return float64(percentile(beside, 0.5)) / float64(percentile(quiet, 0.5))
}

func (s *shares) holds() bool {
	return slower(s.quiet.write, s.beside.write) <= sharesSlower &&
		slower(s.quiet.list, s.beside.list) <= sharesSlower &&
		s.perMember <= sharesPerMember && s.nothingChanges <= sharesNothing
}

func (s *shares) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }
	three := func(all []time.Duration) string {
		return ms(percentile(all, 0.5)) + ", " + ms(percentile(all, 0.99)) + ", " + ms(all[len(all)-1])
	}
	return fmt.Sprintf("%s | %s | %.1f | %s | %s | %.1f | %.1f | %.1f | %s | %.0f | %.0f",
		ms(percentile(s.quiet.write, 0.5)), three(s.beside.write), slower(s.quiet.write, s.beside.write),
		ms(percentile(s.quiet.list, 0.5)), three(s.beside.list), slower(s.quiet.list, s.beside.list), s.changes,
		s.refused, ms(s.alone), s.perMember, s.nothingChanges)
}

func sharesOf(ctx context.Context, p *plan, engine, binary, dir string) (_ *shares, err error) {
	s := &subject{engine: engine, binary: binary, dir: filepath.Join(dir, "data")}
	defer func() { err = errors.Join(s.explain(err), s.close()) }()
	if engine == "postgres" {
		pg, err := openPostgres(ctx)
		if err != nil {
			return nil, err
		}
		s.cleanups = append(s.cleanups, pg.close)
		if s.database, err = pg.create(ctx); err != nil {
			return nil, err
		}
	}
	if s.server, err = start(ctx, binary, s.dir, s.database); err != nil {
		return nil, err
	}
	admin, err := firstToken(s.dir)
	if err != nil {
		return nil, err
	}
	if s.world, err = fill(ctx, s.server.address, admin, 1, true); err != nil {
		return nil, err
	}
	if err := s.server.stop(); err != nil {
		return nil, err
	}
	group, err := s.seedShares(ctx)
	if err != nil {
		return nil, err
	}
	if s.server, err = start(ctx, binary, s.dir, s.database); err != nil {
		return nil, err
	}
	got := &shares{}
	if err := s.sharesBytes(ctx, got, group); err != nil {
		return nil, err
	}
	if got.quiet, err = s.neighbour(ctx, p.measured); err != nil {
		return nil, err
	}
	crowd, end := context.WithCancel(ctx)
	defer end()
	var changes, refused atomic.Int64
	failed := make(chan error, manyCallers)
	for i := range manyCallers {
		go func() { failed <- s.changeRoles(crowd, group, i, &changes, &refused) }()
	}
	if err := pause(ctx, nil, 2*time.Second); err != nil {
		return nil, err
	}
	changed, refusals, began := changes.Load(), refused.Load(), time.Now()
	got.beside, err = s.neighbour(ctx, 3*p.measured)
	took := time.Since(began).Seconds()
	got.changes, got.refused = float64(changes.Load()-changed)/took, float64(refused.Load()-refusals)/took
	end()
	for range manyCallers {
		err = errors.Join(err, <-failed)
	}
	if err != nil {
		return nil, err
	}
	again, err := s.neighbour(ctx, p.measured) // what else the machine does may have changed meanwhile
	got.quiet.write, got.quiet.list = append(got.quiet.write, again.write...), append(got.quiet.list, again.list...)
	slices.Sort(got.quiet.write)
	slices.Sort(got.quiet.list)
	return got, err
}

// seedShares adds users to two organizations, and in one of them all to one group. The server must not run.
func (s *subject) seedShares(ctx context.Context) (group string, err error) {
	st, err := s.openStore(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	groups, err := makeGroups(ctx, st, s.world.few.org, s.world.few.user, 1, nil)
	if err != nil {
		return "", err
	}
	in := func(at int) []string {
		if at == 0 { // the one who made it is in it, too
			return nil
		}
		return groups
	}
	err = errors.Join(addUsers(ctx, st, s.world.few.org, sharesMembers, in),
		addUsers(ctx, st, s.world.many.org, sharesMembers, func(int) []string { return nil }))
	return groups[0], err
}

func setRoles(w *world, group string, roles ...access.Role) call {
	names := []string{}
	for _, r := range roles {
		names = append(names, string(r))
	}
	return call{token: w.few.token, verb: "PUT", path: "/v1/groups/" + group + "/roles",
		message: &signetv1.SetGroupRolesRequest{Roles: names}}
}

// The two sets of roles that are set in turns.
var turns = []access.Role{access.OrgUserManager, access.OrgSettingsManager}

// changeRoles sets the roles of a group again and again, each time others than before as far as it knows.
func (s *subject) changeRoles(ctx context.Context, group string, i int, changes, refused *atomic.Int64) error {
	conn, err := dialREST(s.server.address, time.Now().Add(5*time.Minute))
	if err != nil {
		return err
	}
	defer conn.close()
	var requests []*template
	for _, role := range turns {
		t, err := setRoles(s.world, group, role).rest()
		if err != nil {
			return err
		}
		requests = append(requests, t)
	}
	for ; ctx.Err() == nil; i++ {
		status, body, err := conn.do(requests[i%len(requests)].bytes)
		switch {
		case err != nil:
			return err
		case status == 200:
			changes.Add(1)
		case status == 409 || status == 429 || status == 503 || status == 504:
			refused.Add(1)
		default:
			return fmt.Errorf("status %d: %s", status, clip(body))
		}
	}
	return nil
}

// neighbour times one who writes and one who lists, at the same time.
func (s *subject) neighbour(ctx context.Context, measured time.Duration) (n neighbour, err error) {
	deadline := time.Now().Add(measured + patience)
	var group sync.WaitGroup
	failed := make(chan error, 2)
	time1 := func(what call, took *[]time.Duration) {
		group.Go(func() {
			again, end, err := restCaller(s.server.address, what, deadline)
			if err != nil {
				failed <- err
				return
			}
			defer end()
			for until := time.Now().Add(measured); time.Now().Before(until) && ctx.Err() == nil; {
				begin := time.Now()
				if err := again(); err != nil {
					failed <- err
					return
				}
				*took = append(*took, time.Since(begin))
			}
			slices.Sort(*took)
		})
	}
	time1(updateMyProfile(&s.world.many), &n.write)
	time1(listUsers(&s.world.many, ""), &n.list)
	group.Wait()
	close(failed)
	return n, errors.Join(<-failed, ctx.Err())
}

// sharesBytes measures what a change of roles adds to the database, and what one that changes nothing does.
func (s *subject) sharesBytes(ctx context.Context, got *shares, group string) error {
	conn, err := dialREST(s.server.address, time.Now().Add(5*time.Minute))
	if err != nil {
		return err
	}
	defer conn.close()
	var took time.Duration
	set := func(role access.Role) error {
		began := time.Now()
		err := conn.ask(setRoles(s.world, group, role), &signetv1.SetGroupRolesResponse{})
		if took += time.Since(began); err == nil && s.database != "" {
			// as the database does it by itself, so that the room of old rows is used again
			err = vacuum(ctx, s.database)
		}
		return err
	}
	for i := range 4 { // as much room as old rows need is there then
		if err := set(turns[i%2]); err != nil {
			return err
		}
	}
	before, err := s.bytes(ctx)
	if err != nil {
		return err
	}
	took = 0
	for i := range sharesRequests {
		if err := set(turns[i%2]); err != nil {
			return err
		}
	}
	got.alone = took / sharesRequests
	after, err := s.bytes(ctx)
	if err != nil {
		return err
	}
	for range sharesRequests {
		if err := set(turns[(sharesRequests-1)%2]); err != nil {
			return err
		}
	}
	end, err := s.bytes(ctx)
	got.perMember = float64(after-before) / sharesRequests / sharesMembers
	got.nothingChanges = float64(end-after) / sharesRequests
	return err
}

// bytes is how large the database is, with its indexes, and without what could be used again.
func (s *subject) bytes(ctx context.Context) (size int64, err error) {
	if s.database == "" {
		return s.bytesOfFile(ctx)
	}
	if err := vacuum(ctx, s.database); err != nil {
		return 0, err
	}
	conn, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	return size, errors.Join(err, conn.Close(ctx))
}

// bytesOfFile asks the embedded database itself: a part of it may be in its journal.
func (s *subject) bytesOfFile(ctx context.Context) (size int64, err error) {
	db, err := sql.Open("sqlite", sqliteAddress(filepath.Join(s.dir, "signet.db"), "query_only(1)"))
	if err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx,
		"SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&size)
	return size, errors.Join(err, db.Close())
}
