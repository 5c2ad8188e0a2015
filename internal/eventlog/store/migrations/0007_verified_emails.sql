-- Of several users with the same verified e-mail address the first in this order is found by it, however many there are. Rows that a node of the
-- version before writes come last until they are folded into the new shape.
ALTER TABLE users ADD COLUMN email_order TEXT NOT NULL DEFAULT '~';
CREATE INDEX users_email_order ON users (org_id, verified_email, email_order, id);
DROP INDEX users_verified_email;
-- Over the whole installation addresses are found by whose word they are verified on. Such rows are not found like that before.
ALTER TABLE users ADD COLUMN email_word TEXT NOT NULL DEFAULT '';
CREATE INDEX users_email_word ON users (email_word, email_order, id) WHERE email_word <> '';
