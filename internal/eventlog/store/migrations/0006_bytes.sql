-- Texts are compared by bytes in every column: by the rules of a language, finding an identifier takes longer, and orders differ between
-- databases. Tables are made like that today; these are older ones. SQLite compares by bytes anyway: "/* POSTGRES */" is for the other engine alone.
/* POSTGRES */ DO $$
DECLARE t RECORD; BEGIN
FOR t IN SELECT table_name AS name, string_agg(format('ALTER COLUMN %I TYPE text COLLATE "C"', column_name), ', ') AS columns FROM information_schema.columns
	WHERE table_schema = current_schema() AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C' GROUP BY table_name
LOOP EXECUTE format('ALTER TABLE %I %s', t.name, t.columns); END LOOP; END $$;
