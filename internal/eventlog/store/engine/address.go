package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Address is where a database is, for people: without user, password and options.
func Address(database string) string {
	if !IsPostgres(database) {
		return database
	}
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return "PostgreSQL"
	}
	return "PostgreSQL at " + strings.Join(hosts(&config.Config), ", ") + ", database " + config.Database
}

// hosts are those that an address names, in its order.
func hosts(c *pgconn.Config) (all []string) {
	add := func(host string, port uint16) {
		name := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if strings.HasPrefix(host, "/") { // a socket
			name = host
		}
		if !slices.Contains(all, name) { // the driver has those twice that it tries with and without TLS
			all = append(all, name)
		}
	}
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port)
	}
	return all
}

// How long a connection may take, unless connect_timeout says otherwise. One of several hosts must not keep the others
// waiting.
const (
	connectTimeout    = 10 * time.Second
	connectTimeoutOne = 2 * time.Second // of several
)

var errAddress = errors.New("the database address is not valid: it must be a URL such as postgres://user@host:5432/name")

// parseAddress reads an address, and fills in what it leaves open. pooled tells that it leads to a pooler, see
// pooler.go.
func parseAddress(database string) (config *pgxpool.Config, pooled bool, err error) {
	config, err = pgxpool.ParseConfig(database)
	if err != nil {
		return nil, false, errAddress // err would quote the password
	}
	mode, pooled := config.ConnConfig.RuntimeParams[poolerParam]
	if pooled && mode != "transaction" {
		return nil, false, errors.New("the database address is not valid: " + poolerParam +
			" must be transaction, or left out")
	}
	if delete(config.ConnConfig.RuntimeParams, poolerParam); pooled &&
		!strings.Contains(database, "default_query_exec_mode") {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if !strings.Contains(database, "pool_max_conns") {
		config.MaxConns = int32(max(8, 4*runtime.GOMAXPROCS(0)))
	}
	c, several := config.ConnConfig, len(hosts(&config.ConnConfig.Config)) > 1
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
		if several {
			c.ConnectTimeout = connectTimeoutOne
		}
	}
	if several && c.ValidateConnect == nil && !strings.Contains(database, "target_session_attrs") {
		// who names the members of a cluster means the one that writes
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if judge := c.ValidateConnect; judge != nil {
		c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			return wrongRole(conn, judge(ctx, conn))
		}
	}
	return config, pooled, nil
}

// errWrongRole says that a server is not what target_session_attrs wants.
var errWrongRole = errors.New("the server is not the one that target_session_attrs wants")

// wrongRole marks a refusal that comes from this side, and not from a server or a connection that has failed.
func wrongRole(conn *pgconn.PgConn, err error) error {
	_, answered := errors.AsType[*pgconn.PgError](err)
	_, preferred := errors.AsType[*pgconn.NotPreferredError](err)
	if err == nil || answered || preferred || conn.IsClosed() {
		return err
	}
	return fmt.Errorf("%w: %w", errWrongRole, err)
}

// PoolSize is how many connections a node makes at most to a PostgreSQL database.
func PoolSize(database string) (int, error) {
	config, _, err := parseAddress(database)
	if err != nil {
		return 0, err
	}
	return int(config.MaxConns), nil
}
