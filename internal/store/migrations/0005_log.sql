-- Events are listed by the organization they are of, and by who caused them, in one organization or in all of them.
CREATE INDEX events_org ON events (org_id, position);
CREATE INDEX events_org_actor ON events (org_id, actor, position);
CREATE INDEX events_actor ON events (actor, position);
