package event

import "slices"

// Changed gives a pointer to the new value where it differs from the old one, and nil where it does not: facts record
// only what changed.
func Changed[T comparable](old, value T) *T {
	if old == value {
		return nil
	}
	return &value
}

// ChangedList is Changed for a list.
func ChangedList[T comparable](old, list []T) *[]T {
	if slices.Equal(old, list) {
		return nil
	}
	list = append([]T{}, list...) // none is an empty list: null would read as no change
	return &list
}

// Set applies what Changed recorded.
func Set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
