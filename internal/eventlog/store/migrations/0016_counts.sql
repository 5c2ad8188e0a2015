-- Objects are counted over an index alone. SQLite does so only if the index has the column of its own condition, so state comes behind what lists need. No
-- change has more to write: an object that changes its state had to leave or enter the index before, too.
CREATE INDEX users_listed_state ON users (org_id, id, state) WHERE state <> 'removed';
CREATE INDEX apps_listed_state ON apps (org_id, id, state) WHERE state <> 'removed';
CREATE INDEX idps_listed_state ON idps (org_id, id, state) WHERE state <> 'removed';
CREATE INDEX org_groups_listed_state ON org_groups (org_id, id, state) WHERE state <> 'removed';
DROP INDEX users_listed;
DROP INDEX apps_listed;
DROP INDEX idps_listed;
DROP INDEX org_groups_listed;
-- Parts that are small: the others are what is left of all. A removed user has no type.
CREATE INDEX users_services ON users (org_id) WHERE type = 'service';
CREATE INDEX invitations_pending ON invitations (org_id) WHERE state = 'pending';
