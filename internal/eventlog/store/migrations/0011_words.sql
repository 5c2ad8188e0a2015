-- The words that objects are found by, see internal/syntax/words.go. They follow from the state, like groups. Objects of before get theirs when they are
-- folded into their new shape.
CREATE TABLE words (
	object_id TEXT NOT NULL,
	word      TEXT NOT NULL,
	org_id    TEXT NOT NULL,
	PRIMARY KEY (object_id, word)
) /* KEYED */;
CREATE INDEX words_org ON words (org_id, word, object_id);
-- No word is empty. That it says so keeps this index from being used for one organization.
CREATE INDEX words_all ON words (word, object_id) WHERE word <> '';
