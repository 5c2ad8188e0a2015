-- Sign-ins through identity providers that failed: one object a provider.
CREATE TABLE idp_sign_ins (
	id TEXT PRIMARY KEY, org_id TEXT NOT NULL, sequence BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL,
	hash BYTEA NOT NULL, key_id TEXT NOT NULL, shape BIGINT NOT NULL, doc TEXT NOT NULL
) /* KEYED */;
CREATE INDEX idp_sign_ins_shape ON idp_sign_ins (shape, id);
