-- Offers of roles to people of other organizations.
CREATE TABLE offers (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	state TEXT NOT NULL
) /* KEYED */;
CREATE INDEX offers_listed ON offers (org_id, id) WHERE state <> 'removed';
CREATE INDEX offers_shape ON offers (shape, id);
