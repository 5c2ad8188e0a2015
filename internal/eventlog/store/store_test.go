package store_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event/listtest"
	"github.com/signet-idm/signet/internal/eventlog/event/storetest"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/test/testdb"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Subject{Open: open, HasData: store.HasData, ErrWrongKey: store.ErrWrongKey})
}

// The same behind PgBouncer, which make faults does.
func TestFaultsStoreBehindAPooler(t *testing.T) {
	if os.Getenv("SIGNET_FAULTS") == "" {
		return
	}
	var mu sync.Mutex
	pooled := map[string]string{} // by the address without
	storetest.Run(t, storetest.Subject{
		Pooled:      true,
		HasData:     store.HasData,
		ErrWrongKey: store.ErrWrongKey,
		Open: func(ctx context.Context, o storetest.Options) (storetest.Node, bool, error) {
			if store.IsPostgres(o.Database) {
				mu.Lock()
				defer mu.Unlock()
				if pooled[o.Database] == "" {
					pooled[o.Database] = testdb.Pooled(t, testdb.Database{Engine: testdb.Postgres, URL: o.Database}).URL
				}
				o.Database = pooled[o.Database]
			}
			return open(ctx, o)
		},
	})
}

func TestLists(t *testing.T) {
	listtest.Run(t, listtest.Subject{
		Open: func(ctx context.Context, o storetest.Options) (storetest.Node, error) {
			n, _, err := open(ctx, o)
			return n, err
		},
		OpenBefore: func(ctx context.Context, o storetest.Options) (storetest.Node, error) {
			s, err := store.BeforeLists(ctx,
				store.Options{Database: o.Database, Kinds: o.Kinds, Master: o.Master, Clock: o.Clock})
			return node{s}, err
		},
	})
}

func open(ctx context.Context, o storetest.Options) (storetest.Node, bool, error) {
	s, created, err := store.Open(ctx,
		store.Options{Database: o.Database, Kinds: o.Kinds, Master: o.Master, Clock: o.Clock, ReadOnly: o.ReadOnly})
	if err != nil {
		return nil, false, err
	}
	return node{s}, created, nil
}

// node gives a store the suite's words for its results.
type node struct{ *store.Store }

func (n node) RebuildCheck(ctx context.Context) ([]string, error) {
	report, err := n.Store.RebuildCheck(ctx)
	return report.Differences, err
}

func (n node) Rebuild(ctx context.Context) error {
	_, err := n.Store.Rebuild(ctx)
	return err
}
