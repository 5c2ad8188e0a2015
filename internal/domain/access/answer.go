package access

import (
	"slices"
)

// Answer is somebody who changed something that others trust, with the roles of that moment, and which parts of it they
// answer for by that.
type Answer struct {
	UserID string      `json:"userId"`
	Roles  Memberships `json:"roles,omitempty"`
	Fields []string    `json:"fields,omitempty"` // sorted; none: all that nobody else answers for
}

// Same tells whether two are of one person with the same roles.
func (a Answer) Same(b Answer) bool {
	return a.UserID == b.UserID && a.Roles.Equal(b.Roles)
}

// Equal tells whether two are of one person with the same roles for the same parts.
func (a Answer) Equal(b Answer) bool { return a.Same(b) && slices.Equal(a.Fields, b.Fields) }

// For tells whether somebody answers for a part, if nobody else does by its name.
func (a Answer) For(field string) bool { return slices.Contains(a.Fields, field) }

// After is the answer for parts that somebody has changed last, and what is left of the answers before, oldest first. A
// person who changes one part has not checked the others, so the people who changed those still answer for them. An
// answer that names no parts is for everything, and leaves nothing.
func (a Answer) After(before []Answer) (last Answer, earlier []Answer) {
	last = a
	if a.Fields == nil {
		return last, nil
	}
	for _, b := range before {
		switch {
		case b.Same(a) && b.Fields == nil:
			last.Fields = nil
		case b.Same(a):
			if last.Fields != nil {
				last.Fields = slices.Compact(slices.Sorted(slices.Values(slices.Concat(last.Fields, b.Fields))))
			}
		case b.Fields == nil:
			earlier = append(earlier, b)
		default:
			b.Fields = slices.DeleteFunc(slices.Clone(b.Fields), a.For)
			if len(b.Fields) > 0 {
				earlier = append(earlier, b)
			}
		}
	}
	return last, earlier
}

// Whose gives who answers for a part.
func Whose(answers []Answer, field string) (found Answer) {
	for _, a := range answers {
		if a.For(field) {
			return a
		}
		if a.Fields == nil {
			found = a
		}
	}
	return found
}

// Vouch decides what somebody answers for who changed some parts and sent others unchanged. They answer for the parts
// that they changed. They also answer for the unchanged parts if they hold more than the person who answered for those
// before. With as much or less they would gain nothing, and others could lose what they have. needed are the parts that
// somebody has to answer for after the change. If nobody else answers for any of them, the answer is for everything.
// None: false.
func Vouch(before []Answer, by Answer, changed, sent, needed []string) (Answer, bool) {
	fields := slices.Clone(changed)
	for _, field := range sent {
		if slices.Contains(fields, field) {
			continue
		}
		if whose := Whose(before, field).Roles; by.Roles.Cover(whose) && !whose.Cover(by.Roles) {
			fields = append(fields, field)
		}
	}
	if len(fields) == 0 {
		return Answer{}, false
	}
	others := slices.ContainsFunc(needed,
		func(field string) bool { return !slices.Contains(fields, field) && !Whose(before, field).Same(by) })
	by.Fields = nil
	if others {
		by.Fields = slices.Compact(slices.Sorted(slices.Values(fields)))
	}
	return by, true
}
