-- Events are listed by the organization they are of. Every index more makes every change slower: who caused an event is looked for
-- among those of the organization, in bounded steps.
CREATE INDEX events_org ON events (org_id, position);

-- Checkpoints seal the log: a row for every 1,000 positions, numbered from 1, and number 0, the head, for those behind the last of them. Each row
-- has the digest of the whole log up to its position, a tag for every event of its range, and a seal over all of it that needs the root key.
CREATE TABLE checkpoints (
	number   BIGINT PRIMARY KEY,
	position BIGINT NOT NULL,
	digest   BYTEA  NOT NULL,
	tags     BYTEA  NOT NULL,
	seal     BYTEA  NOT NULL
);

-- Where events go to as they happen.
CREATE TABLE webhooks (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	state TEXT NOT NULL, name TEXT NOT NULL
) /* KEYED */;
CREATE INDEX webhooks_listed ON webhooks (org_id, id) WHERE state <> 'removed';
CREATE INDEX webhooks_name ON webhooks (org_id, name, id) WHERE state <> 'removed';
CREATE INDEX webhooks_shape ON webhooks (shape, id);
-- The same without those that are gone, for the nodes that serve them all.
CREATE INDEX webhooks_all ON webhooks (id) WHERE state <> 'removed';

-- What webhooks have put aside, and their last attempts. Read in the order of keys.
CREATE TABLE deliveries (
	key TEXT PRIMARY KEY, value BYTEA NOT NULL, expires BIGINT NOT NULL
) /* KEYED */;
