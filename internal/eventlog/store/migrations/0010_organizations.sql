-- Groups of users, projects with their grants and accesses, and invitations.
CREATE TABLE org_groups (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	state TEXT NOT NULL, name TEXT NOT NULL
) /* KEYED */;
CREATE INDEX org_groups_listed ON org_groups (org_id, id) WHERE state <> 'removed';
CREATE INDEX org_groups_name ON org_groups (org_id, name, id) WHERE state <> 'removed';
CREATE INDEX org_groups_shape ON org_groups (shape, id);

CREATE TABLE projects (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	state TEXT NOT NULL, name TEXT NOT NULL
) /* KEYED */;
CREATE INDEX projects_listed ON projects (org_id, id) WHERE state <> 'removed';
CREATE INDEX projects_name ON projects (org_id, name, id) WHERE state <> 'removed';
CREATE INDEX projects_shape ON projects (shape, id);

CREATE TABLE project_grants (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	state TEXT NOT NULL
) /* KEYED */;
CREATE INDEX project_grants_listed ON project_grants (org_id, id) WHERE state <> 'removed';
CREATE INDEX project_grants_shape ON project_grants (shape, id);

CREATE TABLE project_accesses (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	state TEXT NOT NULL
) /* KEYED */;
CREATE INDEX project_accesses_listed ON project_accesses (org_id, id) WHERE state <> 'removed';
CREATE INDEX project_accesses_shape ON project_accesses (shape, id);

-- The address that an invitation is for is in the document until the invitation ends unaccepted, or with its user.
CREATE TABLE invitations (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL,
	state TEXT NOT NULL, email TEXT NOT NULL
) /* KEYED */;
CREATE INDEX invitations_listed ON invitations (org_id, id) WHERE state <> 'removed';
CREATE INDEX invitations_email ON invitations (org_id, email, id) WHERE state <> 'removed';
CREATE INDEX invitations_shape ON invitations (shape, id);
