package event

import "context"

// Store keeps the log and the state that folds out of it. Reads see every change that has been answered, on
// every node.
//
// Errors: Do gives back what Decide refused with; Aborted/CONTENTION when a race was lost too often;
// Unavailable/STORAGE_UNAVAILABLE when the database is away (the outcome may be unknown); DeadlineExceeded when ctx
// ended first. Reads fail with Unavailable or DeadlineExceeded only.
type Store interface {
	// Do runs one command. When it returns nil the change is durable.
	Do(ctx context.Context, c Command) error

	Reader
}

// Reader is the reading half of Store. Nothing found is nil (or an empty list), not an error.
type Reader interface {
	// Record reads one object.
	Record(ctx context.Context, ref Ref) (*Record, error)
	// RecordsWhere reads up to limit objects of an organization by one of their lookup columns, oldest first.
	RecordsWhere(ctx context.Context, kind Kind, org, column, value string, limit int) ([]*Record, error)
	// Holder tells which object holds a claim; empty when it is free.
	Holder(ctx context.Context, claim Claim) (string, error)
	// Row reads a row beside the log.
	Row(ctx context.Context, key RowKey) (*Row, error)
	// Bearer reads a token with its user and that user's organization, in one query.
	Bearer(ctx context.Context, tokenHash []byte) (*Bearer, error)
	// TokenByID reads a token by its public id.
	TokenByID(ctx context.Context, id string) (*Token, error)
	// Events reads up to limit events after a position, in order.
	Events(ctx context.Context, after int64, limit int) ([]Event, error)
}

// Bearer is what decides about a request's credential: the token (without its time of making), and the state
// documents of its user and that user's organization.
type Bearer struct {
	Token   Token
	OrgID   string
	UserDoc []byte
	OrgDoc  []byte
}
