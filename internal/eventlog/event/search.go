package event

import "context"

// Search asks for a page of the objects of an organization (or of the whole installation) that are found by all of
// several words: each is the beginning of one of the object's own, see syntax.Words. They come in the order of the word
// that the most selective one has found, and of their identifiers.
type Search struct {
	Kind  Kind
	Org   string   // empty: all organizations
	Words []string // as syntax.QueryWords gives them: none is the beginning of another one

	After Cursor
	Limit int
}

// Search reads a page and opens its objects.
func (k *Objects[S]) Search(ctx context.Context, r Reader, q Search) ([]*Object[S], *Cursor, error) {
	q.Kind = k.schema.Name
	page, err := r.Search(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	objects, err := k.openAll(page.Records)
	return objects, page.Next, err
}
