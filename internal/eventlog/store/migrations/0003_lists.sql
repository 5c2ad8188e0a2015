-- What lists are filtered and sorted by. Objects of before get their values when they are folded into their new shape.
ALTER TABLE users ADD COLUMN state TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN type TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN user_name TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN email TEXT NOT NULL DEFAULT '';
CREATE INDEX users_listed ON users (org_id, id) WHERE state <> 'removed';
CREATE INDEX users_user_name ON users (org_id, user_name, id) WHERE state <> 'removed';
CREATE INDEX users_name ON users (org_id, name, id) WHERE state <> 'removed';
CREATE INDEX users_email ON users (org_id, email, id) WHERE state <> 'removed';

ALTER TABLE orgs ADD COLUMN state TEXT NOT NULL DEFAULT '';
ALTER TABLE orgs ADD COLUMN name TEXT NOT NULL DEFAULT '';
CREATE INDEX orgs_listed ON orgs (id) WHERE state <> 'removed';
CREATE INDEX orgs_name ON orgs (name, id) WHERE state <> 'removed';

ALTER TABLE idps ADD COLUMN state TEXT NOT NULL DEFAULT '';
ALTER TABLE idps ADD COLUMN type TEXT NOT NULL DEFAULT '';
ALTER TABLE idps ADD COLUMN name TEXT NOT NULL DEFAULT '';
CREATE INDEX idps_listed ON idps (org_id, id) WHERE state <> 'removed';
CREATE INDEX idps_name ON idps (org_id, name, id) WHERE state <> 'removed';

-- Groups that objects are in by their state, such as the members of an organization.
CREATE TABLE groupings (
	name      TEXT NOT NULL,
	object_id TEXT NOT NULL,
	PRIMARY KEY (name, object_id)
) /* KEYED */;
CREATE INDEX groupings_object ON groupings (object_id);

-- A user's tokens in the order in which they are listed.
ALTER TABLE tokens ADD COLUMN name TEXT NOT NULL DEFAULT '';
CREATE INDEX tokens_listed ON tokens (user_id, kind, id);
DROP INDEX tokens_user;

-- Objects of an older shape are found at every start without reading the others.
CREATE INDEX installations_shape ON installations (shape, id);
CREATE INDEX orgs_shape ON orgs (shape, id);
CREATE INDEX users_shape ON users (shape, id);
CREATE INDEX idps_shape ON idps (shape, id);
CREATE INDEX sign_ins_shape ON sign_ins (shape, id);
