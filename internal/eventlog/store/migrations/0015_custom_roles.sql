-- Custom roles of organizations and of the installation.
CREATE TABLE custom_roles (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	state TEXT NOT NULL
) /* KEYED */;
CREATE INDEX custom_roles_listed ON custom_roles (org_id, id) WHERE state <> 'removed';
