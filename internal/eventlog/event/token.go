package event

import (
	"errors"
	"slices"
)

// Token is a bearer credential as stored: a session, a personal access token, or an access token of an application. It
// holds only while its epochs are those of its user and organization, so that one number in their state ends all tokens
// at once and for good.
type Token struct {
	ID       string
	Hash     []byte // SHA-256 of the token itself
	Kind     string
	Name     string // what it is for; of a session, where it was opened
	UserID   string
	Epoch    int64
	OrgEpoch int64
	Created  int64
	Expires  int64

	Session string // id of the session it lives and dies with; empty: none
	Client  string // id of the application it was given to; empty: none
	Family  string // what it was derived from, see Tx.DropFamily; empty: nothing
	Data    string // what its kind needs to know besides, as JSON; empty: nothing

	Provider string // id of the identity provider that its person came through; empty: none. It never changes
}

// TokenChange is one change to the stored tokens: exactly one field is set.
type TokenChange struct {
	Put        *Token
	Advance    *TokenAdvance
	Extend     *TokenExtension
	Update     *TokenUpdate
	DropFamily string       // all of a family
	DropClient *TokenClient // all that a user gave to an application
	DropUser   string       // all of a user
	Drop       string       // id
}

// TokenAdvance moves a token from one epoch of its user to another.
type TokenAdvance struct {
	ID       string
	From, To int64
}

// TokenExtension lets a token expire later.
type TokenExtension struct {
	ID      string
	Expires int64
}

// TokenUpdate gives a token another hash and other data.
type TokenUpdate struct {
	ID   string
	Hash []byte
	Data string
}

// TokenClient is a user and an application.
type TokenClient struct {
	UserID, Client string
}

// Drops tells whether the change, which is not about a single token, removes this one.
func (t TokenChange) Drops(token *Token) bool {
	switch {
	case t.DropFamily != "":
		return token.Family == t.DropFamily
	case t.DropClient != nil:
		return token.UserID == t.DropClient.UserID && token.Client == t.DropClient.Client
	case t.DropUser != "":
		return token.UserID == t.DropUser
	}
	return false
}

// After gives what the change makes of the token with this id. Nil is one that is not there. It leaves the token itself
// alone.
func (t TokenChange) After(id string, token *Token) *Token {
	switch {
	case t.Put != nil && t.Put.ID == id:
		return t.Put
	case token == nil || t.Drop == id || t.Drops(token):
		return nil
	case t.ID() != id:
		return token
	}
	changed := *token
	switch {
	case t.Advance != nil && t.Advance.From == token.Epoch:
		changed.Epoch = t.Advance.To
	case t.Extend != nil:
		changed.Expires = max(token.Expires, t.Extend.Expires)
	case t.Update != nil:
		changed.Hash, changed.Data = t.Update.Hash, t.Update.Data
	}
	return &changed
}

// ID is that of the token that the change is about; empty where it is not about a single one.
func (t TokenChange) ID() string {
	switch {
	case t.DropFamily != "", t.DropClient != nil, t.DropUser != "":
		return ""
	case t.Extend != nil:
		return t.Extend.ID
	case t.Update != nil:
		return t.Update.ID
	case t.Put != nil:
		return t.Put.ID
	case t.Advance != nil:
		return t.Advance.ID
	}
	return t.Drop
}

// Token gives a token that the command declared; nil when there is none. One that has expired may be there still. It is
// not to be altered.
func (tx *Tx) Token(id string) (*Token, error) {
	if !slices.Contains(tx.command.Tokens, id) {
		return nil, errors.New("event: a token was not declared")
	}
	token := tx.batch.loaded.Tokens[id]
	for _, changes := range [...][]TokenChange{tx.batch.tokens, tx.tokens} {
		for _, change := range changes {
			token = change.After(id, token)
		}
	}
	return token, nil
}

// PutToken stores a new token.
func (tx *Tx) PutToken(t Token) { tx.tokens = append(tx.tokens, TokenChange{Put: &t}) }

// AdvanceToken lets one token live on in a new epoch of its user. One that is gone, or died with an epoch before,
// stays dead.
func (tx *Tx) AdvanceToken(id string, from, to int64) {
	tx.tokens = append(tx.tokens, TokenChange{Advance: &TokenAdvance{ID: id, From: from, To: to}})
}

// ExtendToken lets a token expire at a later time. One that is gone stays gone.
func (tx *Tx) ExtendToken(id string, expires int64) {
	tx.tokens = append(tx.tokens, TokenChange{Extend: &TokenExtension{ID: id, Expires: expires}})
}

// UpdateToken gives a token another hash and other data. One that is gone stays gone.
func (tx *Tx) UpdateToken(id string, hash []byte, data string) {
	tx.tokens = append(tx.tokens, TokenChange{Update: &TokenUpdate{ID: id, Hash: hash, Data: data}})
}

// DropToken removes a token by its id.
func (tx *Tx) DropToken(id string) { tx.tokens = append(tx.tokens, TokenChange{Drop: id}) }

// DropFamily removes all tokens of a family. A token that another node puts at the same moment is kept out only by an
// object or row that both commands declare.
func (tx *Tx) DropFamily(family string) {
	if family != "" {
		tx.tokens = append(tx.tokens, TokenChange{DropFamily: family})
	}
}

// DropClient removes all tokens of a user that an application was given, with the same care as DropFamily.
func (tx *Tx) DropClient(userID, client string) {
	if client != "" {
		tx.tokens = append(tx.tokens, TokenChange{DropClient: &TokenClient{UserID: userID, Client: client}})
	}
}

// DropUser removes all tokens of a user, with the same care as DropFamily.
func (tx *Tx) DropUser(userID string) {
	if userID != "" {
		tx.tokens = append(tx.tokens, TokenChange{DropUser: userID})
	}
}

// addTokens notes changes to tokens. What a command of the batch has put and a later one drops is never stored.
func (b *Batch) addTokens(changes []TokenChange) {
	for _, change := range changes {
		if change.ID() == "" {
			b.tokens = slices.DeleteFunc(b.tokens,
				func(before TokenChange) bool { return before.Put != nil && change.Drops(before.Put) })
		}
		b.tokens = append(b.tokens, change)
	}
}
