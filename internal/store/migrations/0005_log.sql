-- Events are listed by the organization they are of, and by who caused them, in one organization or in all of them.
CREATE INDEX events_org ON events (org_id, position);
CREATE INDEX events_org_actor ON events (org_id, actor, position);
CREATE INDEX events_actor ON events (actor, position);

-- Checkpoints seal the log: a row for every 1,000 positions, numbered from 1, and number 0, the head, for those behind the last of them. Each row
-- has the digest of the whole log up to its position, a tag for every event of its range, and a seal over all of it that needs the root key.
CREATE TABLE checkpoints (
	number   BIGINT PRIMARY KEY,
	position BIGINT NOT NULL,
	digest   BYTEA  NOT NULL,
	tags     BYTEA  NOT NULL,
	seal     BYTEA  NOT NULL
);
