package secret

import (
	"fmt"
	"io"
	"log/slog"
)

const redaction = "[secret]"

// redacted is embedded in every key so that no way of printing shows more than [secret].
//
// Package fmt ignores these methods on unexported fields of other structs. A type that embeds redacted therefore keeps
// its bytes hidden.
type redacted struct{}

// hidden returns the value of a key. Printers and reflection follow pointers, but cannot look into a function.
type hidden[T any] func() *T

func hide[T any](value *T) hidden[T] { return func() *T { return value } }

// String returns [secret].
func (redacted) String() string { return redaction }

// GoString returns [secret].
func (redacted) GoString() string { return redaction }

// Format writes [secret] for every verb.
func (redacted) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redaction) }

// LogValue returns [secret].
func (redacted) LogValue() slog.Value { return slog.StringValue(redaction) }

// MarshalJSON returns [secret] as a JSON string.
func (redacted) MarshalJSON() ([]byte, error) { return []byte(`"` + redaction + `"`), nil }

// MarshalText returns [secret], for the encodings that are not JSON.
func (redacted) MarshalText() ([]byte, error) { return []byte(redaction), nil }
