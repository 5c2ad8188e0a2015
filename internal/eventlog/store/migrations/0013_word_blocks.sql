-- What objects are found by, see internal/syntax/terms.go: for each term the numbers of the objects that have it. An object's number is the position of its first event. A row has
-- 256 numbers, a bit each: block is the number without its last eight bits. org is a number for the organization.
CREATE TABLE word_blocks (
	org   BIGINT NOT NULL,
	term  TEXT   NOT NULL,
	block BIGINT NOT NULL,
	m0    BIGINT NOT NULL,
	m1    BIGINT NOT NULL,
	m2    BIGINT NOT NULL,
	m3    BIGINT NOT NULL,
	PRIMARY KEY (org, term, block)
) /* KEYED */;
-- For searches in all organizations. It has to change only if a row comes or goes, not if a bit does.
CREATE INDEX word_blocks_term ON word_blocks (term, org, block);
-- Room for the next version of a row beside it: then PostgreSQL has no index to write to, unless what it is over has changed.
ALTER TABLE users SET (fillfactor = 80) /* POSTGRES */;
ALTER TABLE orgs SET (fillfactor = 80) /* POSTGRES */;
ALTER TABLE idps SET (fillfactor = 80) /* POSTGRES */;
