-- A token that somebody got by signing in through an identity provider counts only while that provider does. No node of the version before makes
-- such tokens.
ALTER TABLE tokens ADD COLUMN provider TEXT NOT NULL DEFAULT '';
ALTER TABLE idps ADD COLUMN standing TEXT NOT NULL DEFAULT '';
