-- What has expired is found without reading the rest (see sweep.go).
CREATE INDEX throttle_expires ON throttle (expires);
CREATE INDEX idempotency_expires ON idempotency (expires);
CREATE INDEX tokens_expires ON tokens (expires);
