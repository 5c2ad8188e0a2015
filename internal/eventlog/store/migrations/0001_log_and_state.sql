-- One text for both engines: TEXT, BIGINT and BYTEA only; times are microseconds; JSON is opaque text.
-- "BIGINT PRIMARY KEY" becomes the row id on SQLite, "/* KEYED */" a table stored in its primary key.

CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value BYTEA NOT NULL
);

-- The log. Never updated, never deleted from.
CREATE TABLE events (
	position   BIGINT PRIMARY KEY,
	object_id  TEXT   NOT NULL,
	sequence   BIGINT NOT NULL,
	org_id     TEXT   NOT NULL,
	type       TEXT   NOT NULL,
	payload    TEXT   NOT NULL,
	sealed     BYTEA,
	key_id     TEXT   NOT NULL,
	prev_hash  BYTEA,
	actor      TEXT   NOT NULL,
	request_id TEXT   NOT NULL,
	time       BIGINT NOT NULL
);
-- The whole guard against two writers extending one object at once.
CREATE UNIQUE INDEX events_object ON events (object_id, sequence);

-- The last position given out. Taking it is the last lock of a transaction, so positions become visible in order.
CREATE TABLE log_head (
	id       BIGINT PRIMARY KEY,
	position BIGINT NOT NULL
);
INSERT INTO log_head (id, position) VALUES (1, 0);

-- State tables: one row an object, folded from its events in the transaction that adds them. standing is the part of
-- the document that every request needs to judge its credential.
CREATE TABLE installations (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL
) /* KEYED */;

CREATE TABLE orgs (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	standing TEXT NOT NULL
) /* KEYED */;

CREATE TABLE users (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	standing TEXT NOT NULL, verified_email TEXT NOT NULL
) /* KEYED */;
CREATE INDEX users_verified_email ON users (org_id, verified_email);

CREATE TABLE idps (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL
) /* KEYED */;

CREATE TABLE sign_ins (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL
) /* KEYED */;

-- Names that one object can hold at a time, as digests of one size.
CREATE TABLE claims (
	digest    BYTEA PRIMARY KEY,
	object_id TEXT NOT NULL
) /* KEYED */;
CREATE INDEX claims_object ON claims (object_id);

-- Rows beside the log. None of them is a fact about an object, and none of them is ever in an event.
CREATE TABLE secrets (
	key TEXT PRIMARY KEY, value BYTEA NOT NULL, expires BIGINT NOT NULL
) /* KEYED */;
CREATE TABLE keys (
	key TEXT PRIMARY KEY, value BYTEA NOT NULL, expires BIGINT NOT NULL
) /* KEYED */;
CREATE TABLE throttle (
	key TEXT PRIMARY KEY, value BYTEA NOT NULL, expires BIGINT NOT NULL
) /* KEYED */;
CREATE TABLE idempotency (
	key TEXT PRIMARY KEY, value BYTEA NOT NULL, expires BIGINT NOT NULL
) /* KEYED */;

-- Sessions and personal access tokens, found by the hash of what the caller holds.
CREATE TABLE tokens (
	hash      BYTEA PRIMARY KEY,
	id        TEXT   NOT NULL,
	kind      TEXT   NOT NULL,
	user_id   TEXT   NOT NULL,
	epoch     BIGINT NOT NULL,
	org_epoch BIGINT NOT NULL,
	created   BIGINT NOT NULL,
	expires   BIGINT NOT NULL
) /* KEYED */;
CREATE UNIQUE INDEX tokens_id ON tokens (id);
CREATE INDEX tokens_user ON tokens (user_id);
