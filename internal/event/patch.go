package event

// Changed gives a pointer to the new value where it differs from the old one, and nil where it does not: facts record
// only what changed.
func Changed[T comparable](old, value T) *T {
	if old == value {
		return nil
	}
	return &value
}

// Set applies what Changed recorded.
func Set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
