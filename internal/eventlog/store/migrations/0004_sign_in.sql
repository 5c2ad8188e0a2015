-- Applications that people sign in to.
CREATE TABLE apps (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	standing TEXT NOT NULL, state TEXT NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL
) /* KEYED */;
CREATE INDEX apps_listed ON apps (org_id, id) WHERE state <> 'removed';
CREATE INDEX apps_name ON apps (org_id, name, id) WHERE state <> 'removed';
CREATE INDEX apps_shape ON apps (shape, id);

-- The keys that tokens are signed with: one object. The private halves are secrets.
CREATE TABLE signing (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL
) /* KEYED */;
CREATE INDEX signing_shape ON signing (shape, id);

-- What people allowed applications to see: one object a person.
CREATE TABLE consents (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL
) /* KEYED */;
CREATE INDEX consents_shape ON consents (shape, id);

-- Sign-ins and grants on their way, and how far the followers of the log have come.
CREATE TABLE flows (
	key TEXT PRIMARY KEY, value BYTEA NOT NULL, expires BIGINT NOT NULL
) /* KEYED */;
CREATE TABLE followers (
	key TEXT PRIMARY KEY, value BYTEA NOT NULL, expires BIGINT NOT NULL
) /* KEYED */;
CREATE INDEX flows_expires ON flows (expires);
CREATE INDEX secrets_expires ON secrets (expires) WHERE expires > 0;

-- What a token lives with: a session, an application, a family of tokens.
ALTER TABLE tokens ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN client TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN family TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN data TEXT NOT NULL DEFAULT '';
CREATE INDEX tokens_family ON tokens (family) WHERE family <> '';

-- What every credential depends on.
ALTER TABLE installations ADD COLUMN standing TEXT NOT NULL DEFAULT '';
