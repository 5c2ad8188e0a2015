-- Events are listed by the organization they are of, and by who caused them.
CREATE INDEX events_org ON events (org_id, position);
CREATE INDEX events_actor ON events (actor, position);

-- Where events go to as they happen.
CREATE TABLE webhooks (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	state TEXT NOT NULL, name TEXT /* BYTES */ NOT NULL
) /* KEYED */;
CREATE INDEX webhooks_listed ON webhooks (org_id, id) WHERE state <> 'removed';
CREATE INDEX webhooks_name ON webhooks (org_id, name, id) WHERE state <> 'removed';
CREATE INDEX webhooks_shape ON webhooks (shape, id);
-- The same without those that are gone, for the nodes that serve them all.
CREATE INDEX webhooks_all ON webhooks (id) WHERE state <> 'removed';

-- What webhooks have put aside, and their last attempts. Read in the order of keys.
CREATE TABLE deliveries (
	key TEXT /* BYTES */ PRIMARY KEY, value BYTEA NOT NULL, expires BIGINT NOT NULL
) /* KEYED */;
