-- Objects of an older shape are found at every start without reading the others. Mostly there are none: an index of all objects took 49 bytes a user, and a page that every new object
-- changed. These have the older ones alone. Kinds that have had one shape only need none.
CREATE INDEX installations_below_2 ON installations (shape, id) WHERE shape < 2;
CREATE INDEX orgs_below_4 ON orgs (shape, id) WHERE shape < 4;
CREATE INDEX users_below_8 ON users (shape, id) WHERE shape < 8;
CREATE INDEX idps_below_5 ON idps (shape, id) WHERE shape < 5;
CREATE INDEX sign_ins_below_3 ON sign_ins (shape, id) WHERE shape < 3;
CREATE INDEX apps_below_5 ON apps (shape, id) WHERE shape < 5;
CREATE INDEX webhooks_below_2 ON webhooks (shape, id) WHERE shape < 2;
DROP INDEX installations_shape;
DROP INDEX orgs_shape;
DROP INDEX users_shape;
DROP INDEX idps_shape;
DROP INDEX sign_ins_shape;
DROP INDEX apps_shape;
DROP INDEX webhooks_shape;
DROP INDEX signing_shape;
DROP INDEX consents_shape;
DROP INDEX idp_sign_ins_shape;
DROP INDEX org_groups_shape;
DROP INDEX projects_shape;
DROP INDEX project_grants_shape;
DROP INDEX project_accesses_shape;
DROP INDEX invitations_shape;
DROP INDEX offers_shape;
