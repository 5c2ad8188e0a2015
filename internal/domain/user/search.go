package user

import (
	"context"
	"fmt"
	"slices"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// MaxSearchWords is how many words a search may have: each makes it more expensive, and a few are enough to find
// somebody.
const MaxSearchWords = 10

// texts are those whose words the user is found by. A removed one has none left.
func (u *User) texts() []string {
	switch {
	case u.Human != nil:
		p := &u.Human.Profile
		return []string{u.Human.Email.Address, u.UserName, p.DisplayName, p.FirstName, p.LastName, p.NickName}
	case u.Service != nil:
		return []string{u.UserName, u.Service.Name}
	}
	return []string{u.UserName}
}

// SearchViolations lists what is wrong with the text of a search.
func SearchViolations(query string) (wrong errs.Violations) {
	if words, _ := syntax.QueryWords(query); len(words) > MaxSearchWords {
		wrong.Add("query", errs.Plain(fmt.Sprintf("must have at most %d words", MaxSearchWords)))
	}
	return wrong
}

// Search reads a page of the users of the permit's organization, or of all, who have for every word of the query one
// that begins with it. A text without any word finds nobody. Errors: InvalidArgument on query; access.ErrDenied where
// all organizations are asked for and the caller may not read them.
func Search(ctx context.Context, r event.Reader, permit access.Permit, query string, everywhere bool,
	after event.Cursor, limit int) ([]*event.Object[User], *event.Cursor, error) {
	switch {
	case permit.Org() == "":
		return nil, nil, access.ErrDenied
	case everywhere && !permit.HoldsFor(0, access.UserSupport, access.Installation) &&
		!permit.Holds(access.UserRead, access.Installation): // support finds people also where it may read them anyway
		return nil, nil, access.ErrDeniedInstallation
	}
	if wrong := SearchViolations(query); wrong != nil {
		return nil, nil, errs.Invalid(wrong...)
	}
	words, full := syntax.QueryWords(query)
	if len(words) == 0 {
		return nil, nil, nil
	}
	q := event.Search{Org: permit.Org(), Words: words, After: after, Limit: limit}
	if everywhere {
		q.Org = ""
	}
	found, next, err := Kind.Search(ctx, r, q)
	return slices.DeleteFunc(found, func(o *event.Object[User]) bool {
		return o.Data.State == Removed || !o.Data.hasAll(full)
	}), next, err
}

// hasAll tells whether the user has words that begin with all of these, in full: the index has only their beginnings.
func (u *User) hasAll(beginnings []string) bool {
	texts := u.texts()
	return !slices.ContainsFunc(beginnings, func(beginning string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return syntax.HasWord(text, beginning) })
	})
}
