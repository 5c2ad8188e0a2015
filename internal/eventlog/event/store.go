package event

import (
	"cmp"
	"context"
	"encoding/json"
)

// Store keeps the log and the state that folds out of it. Reads see every change that has been answered, on
// every node.
//
// Errors: Do gives back what Decide refused with; Aborted/CONTENTION when a race was lost too often;
// Unavailable/NODE_OUTDATED when a newer node has written an object that is to be changed;
// Unavailable/STORAGE_UNAVAILABLE when the database is away (the outcome may be unknown); DeadlineExceeded when ctx
// ended first. Reads fail with Unavailable or DeadlineExceeded only.
type Store interface {
	// Do runs one command. When it returns nil the change is durable.
	Do(ctx context.Context, c Command) error

	Reader
}

// Reader is the reading half of Store. Nothing found is nil (or an empty list), not an error.
type Reader interface {
	// Record reads one object. Others may hold the same record: it is not to be altered.
	Record(ctx context.Context, ref Ref) (*Record, error)
	// RecordsWhere reads up to limit objects of an organization by one of their lookup columns, in the order of another
	// one (by) and of their identifiers.
	RecordsWhere(ctx context.Context, kind Kind, org, column, value, by string, limit int) ([]*Record, error)
	// Find looks for an object in each of several ways, all with one query, and gives its identifier; empty where there
	// is none.
	Find(ctx context.Context, ways []Lookup) ([]string, error)
	// List reads a page of objects.
	List(ctx context.Context, q Query) (Page, error)
	// Count counts objects, all of them at one moment. It reads an index from end to end: a tenth of a second for a
	// million objects.
	Count(ctx context.Context, all []Counted) ([]int64, error)
	// Search reads a page of the objects that are found by words.
	Search(ctx context.Context, q Search) (Page, error)
	// Records reads several objects, of whatever kinds, in a bounded number of round trips; those that there are not
	// are left out.
	Records(ctx context.Context, refs []Ref) (map[Ref]*Record, error)
	// Holder tells which object holds a claim; empty when it is free.
	Holder(ctx context.Context, claim Claim) (string, error)
	// Row reads a row of a side table. Others may hold the same row: it is not to be altered.
	Row(ctx context.Context, key RowKey) (*Row, error)
	// ClientCredential reads an object that has a secret with the secret and its organization, in one query where it
	// was read before.
	ClientCredential(ctx context.Context, ref Ref) (*ClientCredential, error)
	// TokenContext reads a token with its user and that user's organization, in one query.
	TokenContext(ctx context.Context, tokenHash []byte) (*TokenContext, error)
	// AppTokenContext is TokenContext for a token that an application was given: it reads the application, its
	// organization and the session along.
	AppTokenContext(ctx context.Context, tokenHash []byte) (*TokenContext, error)
	// TokenByID reads a token by its public id.
	TokenByID(ctx context.Context, id string) (*Token, error)
	// TokensOf reads up to limit of a user's tokens of one kind that have not expired, in the order of their ids.
	TokensOf(ctx context.Context, userID, kind, afterID string, limit int) ([]Token, error)
	// Events reads up to limit events after a position, in order.
	Events(ctx context.Context, after int64, limit int) ([]Event, error)
	// EventsWhere reads a page of the events that a query is about.
	EventsWhere(ctx context.Context, q EventQuery) (EventPage, error)
	// EventsOf reads up to limit events of an object from a sequence on, in order.
	EventsOf(ctx context.Context, objectID string, from uint64, limit int) ([]Event, error)
	// RowsOf reads up to limit rows of the side table Deliveries whose keys begin with a prefix and come behind after,
	// in the order of their keys' bytes. Other side tables have no such order.
	RowsOf(ctx context.Context, table SideTable, prefix, after string, limit int) ([]Row, error)
}

// Lookup is a way in which an object is found: as the holder of a claim, or by a lookup column.
type Lookup struct {
	Claim Claim // empty: by the column

	// The first object of a kind that has one of several values in a lookup column, in the order of another one (By)
	// and of identifiers. It costs the same however many there are. No object is found by an empty value.
	Kind       Kind
	Org        string
	Anywhere   bool // of whatever organization; Org does not count
	Column, By string
	Values     []string
}

// TokenPart is the part that objects of a kind have in what decides about a token.
type TokenPart int

// The parts.
const (
	NoPart            TokenPart = iota
	TokenUser                   // whose token it is
	TokenOrg                    // the organization of the user, and that of the application
	TokenApp                    // the application that was given the token
	TokenInstallation           // the one object that every token depends on
	TokenProvider               // the identity provider that the person came through
	tokenParts
)

// TokenKinds are the kinds of objects that decide about tokens, by their part; nil where there is none.
type TokenKinds [tokenParts]Definition

// TokenKindsOf finds them.
func TokenKindsOf(kinds []Definition) (found TokenKinds) {
	for _, k := range kinds {
		if k.Token() != NoPart {
			found[k.Token()] = k
		}
	}
	return found
}

// Ref points at an object that has a part. Without such a kind it points at nothing.
func (k *TokenKinds) Ref(part TokenPart, id string) Ref {
	if k[part] == nil {
		return Ref{}
	}
	return Ref{Kind: k[part].Name(), ID: cmp.Or(k[part].Only(), id)}
}

// TokenContext is what decides about a request's token: the token, and the standing of its user and of that user's
// organization, all as they are at one moment.
type TokenContext struct {
	Token        Token
	UserID       string
	OrgID        string
	UserStanding string
	OrgStanding  string
	// InstallationStanding is empty before the first start.
	InstallationStanding string

	// The whole records of that moment, where they were at hand; else nil.
	User, Org *Record

	// Of a token that an application was given: the standing of the application and of the organization that it is of,
	// empty where there is none, and the session that the token lives with, nil where there is none.
	ClientStanding    string
	ClientOrgID       string
	ClientOrgStanding string
	Session           *Token

	// ProviderStanding is that of the identity provider that the token came through, or else its session; empty where
	// there is none.
	ProviderStanding string
}

// ClientCredential is who proves to be somebody by a secret: an object, its organization, and the row of the secret,
// nil where there is none.
type ClientCredential struct {
	Object, Org *Record
	Secret      *Row
}

// SecretName is what the key of an object's secret ends with.
const SecretName = "/secret"

// SecretOf is where the hash of an object's secret lives.
func SecretOf(id string) RowKey { return RowKey{Table: Secrets, Key: id + SecretName} }

// PasswordName is the end of the keys of hashes of passwords.
const PasswordName = "/password"

// PasswordOf is where the hash of an object's password lives. People choose passwords that can be guessed by an
// attacker who has the hash, so the hash is sealed.
func PasswordOf(id string) RowKey { return RowKey{Table: Secrets, Key: id + PasswordName} }

// Standing is the lookup column of users, organizations, applications, identity providers and the installation that
// holds the part of their state that decides about credentials, as JSON. It is small, so that judging a credential
// costs the same however large the rest has grown.
const Standing = "standing"

// StandingOf renders it.
func StandingOf(part any) string {
	text, err := json.Marshal(part)
	if err != nil {
		panic(err) // plain fields of ours
	}
	return string(text)
}
