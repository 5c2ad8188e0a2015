package event

import (
	"context"
	"slices"
	"unicode"
	"unicode/utf8"
)

// State is the lookup column of objects that can be listed. Those in which it says Removed are in no list of an
// organization.
const State = "state"

// Removed is what the column State says of objects that are gone.
const Removed = "removed"

// Query asks for a page of objects: those of an organization (or of the whole installation), in the order of a lookup
// column; or those of a group, in the order of their identifiers.
type Query struct {
	Kind  Kind
	Org   string // empty: all organizations
	Group string // only objects of this group, also removed ones; Org, By and Prefix do not apply

	By     string            // lookup column to sort by; empty: by identifier, the oldest first
	Prefix string            // what the value of By begins with
	Where  map[string]string // values of other lookup columns

	After Cursor
	Limit int
}

// Beginning asks for the objects whose lookup column begins with a text, in its order. An empty text changes nothing.
func (q Query) Beginning(column, text string) Query {
	if text != "" {
		q.By, q.Prefix = column, LookupText(text)
	}
	return q
}

// Where pairs lookup columns with values. An empty value does not restrict.
func Where(columnsAndValues ...string) map[string]string {
	where := map[string]string{}
	for pair := range slices.Chunk(columnsAndValues, 2) {
		if pair[1] != "" {
			where[pair[0]] = pair[1]
		}
	}
	return where
}

// Counted is what to count: the objects of a kind in an organization that are not removed, or a part of them.
type Counted struct {
	Kind Kind
	Org  string

	// Column and Value choose the objects with this value in a lookup column, if Column is not empty. There must be an
	// index of them alone, and none of them may be removed.
	Column, Value string
}

// Cursor says where a list goes on: behind the object with this value of the column By, and this identifier.
type Cursor struct {
	Value string
	ID    string
}

// Page is a part of a list. It may hold fewer objects than asked for, or none, and still be followed by another: a
// query looks at a bounded number of objects.
type Page struct {
	Records []*Record
	Next    *Cursor // nil: this was the last one
}

// List reads a page and opens its objects.
func (k *Objects[S]) List(ctx context.Context, r Reader, q Query) ([]*Object[S], *Cursor, error) {
	q.Kind = k.schema.Name
	page, err := r.List(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	objects, err := k.openAll(page.Records)
	return objects, page.Next, err
}

func (k *Objects[S]) openAll(records []*Record) (objects []*Object[S], err error) {
	objects = make([]*Object[S], len(records))
	for i, rec := range records {
		if objects[i], err = k.Open(rec); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// MaxLookup is how many bytes of a name a lookup column holds: databases limit what an index can take.
const MaxLookup = 256

// LookupText cuts a comparison key to what a lookup column holds. A prefix to search for is cut the same way.
func LookupText(key string) string {
	if len(key) <= MaxLookup {
		return key
	}
	cut := MaxLookup
	for cut > 0 && key[cut]&0xC0 == 0x80 { // not inside a character
		cut--
	}
	return key[:cut]
}

// PrefixEnd is the first text behind all that begin with a prefix: the one with its last character raised; false
// where there is none. Bytes of UTF-8 sort like the characters they stand for.
func PrefixEnd(prefix string) (string, bool) {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch {
		case last == unicode.MaxRune: // nothing comes behind it: raise the one before
		case last == surrogates-1:
			return prefix + string(rune(surrogatesEnd)), true
		default:
			return prefix + string(last+1), true
		}
	}
	return "", false
}

// Between these two there are no characters.
const (
	surrogates    = 0xD800
	surrogatesEnd = 0xE000
)
