package main

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// rawRead is the floor of operations that read: an HTTP server with nothing in it but the read of one state row by the
// primary key. It runs in this process, which its callers share.
type rawRead struct {
	address    string
	server     *http.Server
	postmaster int
	cleanup    func() error
}

// readDocument reads a document.
type readDocument func(ctx context.Context, id string) (string, error)

// openRawRead serves the rows that the floor of writes has made and changes.
func openRawRead(ctx context.Context, database, file string, postmaster int) (*rawRead, error) {
	f := &rawRead{postmaster: postmaster}
	read, err := f.open(ctx, database, file)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, f.cleanup())
	}
	f.address = listener.Addr().String()
	f.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		doc, err := read(r.Context(), r.URL.Path[1:])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(doc)))
		_, _ = w.Write([]byte(doc))
	})}
	go func() { _ = f.server.Serve(listener) }()
	return f, nil
}

// open gives the read: with as many connections as the server has.
func (f *rawRead) open(ctx context.Context, database, file string) (readDocument, error) {
	if database != "" {
		config, err := pgxpool.ParseConfig(database)
		if err != nil {
			return nil, err
		}
		config.MaxConns = int32(max(8, 4*runtime.GOMAXPROCS(0)))
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, err
		}
		f.cleanup = func() error { pool.Close(); return nil }
		return func(ctx context.Context, id string) (doc string, err error) {
			return doc, pool.QueryRow(ctx, floorRead, id).Scan(&doc)
		}, nil
	}
	db, err := sql.Open("sqlite", sqliteAddress(file, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	n := max(4, 2*runtime.GOMAXPROCS(0))
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	f.cleanup = db.Close
	prepared, err := db.PrepareContext(ctx, floorRead)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return func(ctx context.Context, id string) (doc string, err error) {
		// A context that can end costs this driver a goroutine per query.
		return doc, prepared.QueryRowContext(context.WithoutCancel(ctx), id).Scan(&doc)
	}, nil
}

func (f *rawRead) run(ctx context.Context, callers int, warm, measured time.Duration) (sample, error) {
	deadline := time.Now().Add(warm + measured + patience)
	var calls []func() error
	for i := range callers {
		again, end, err := restCaller(f.address, call{verb: "GET", path: "/" + floorID(i)}, deadline)
		if err != nil {
			return sample{}, err
		}
		defer end()
		calls = append(calls, again)
	}
	return drive(ctx, calls, warm, measured, &meter{database: f.postmaster})
}

func (f *rawRead) close() error { return errors.Join(f.server.Close(), f.cleanup()) }
