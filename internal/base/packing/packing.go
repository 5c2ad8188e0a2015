// Package packing says in which coding an answer of HTTP is sent, and compresses what is sent more than once.
package packing

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// Codings of answers, as Accept-Encoding and Content-Encoding name them.
const (
	Brotli = "br"
	Gzip   = "gzip"
)

// Choose chooses the coding of an answer: of those offered, in the server's order, the one that the client likes best.
// An empty string means that the answer is sent as it is. A client that says nothing gets that.
func Choose(h http.Header, offered ...string) string {
	said := h["Accept-Encoding"]
	if len(said) == 0 {
		return ""
	}
	rest, _ := quality(said, "*")
	chosen, best := "", 0.0
	for _, coding := range offered {
		q, named := quality(said, coding)
		if !named {
			q = rest
		}
		if q > best {
			chosen, best = coding, q
		}
	}
	// What is not packed is always acceptable, but counts for more than a coding only if the client says so.
	if plain, named := quality(said, "identity"); named && plain > best {
		return ""
	}
	return chosen
}

// quality reads how much a client likes a coding. A quality of zero is a refusal, and so is one that is no number.
func quality(said []string, coding string) (q float64, named bool) {
	for _, line := range said {
		for part := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(part, ";")
			name = strings.TrimSpace(name)
			if !strings.EqualFold(name, coding) && !(coding == Gzip && strings.EqualFold(name, "x-gzip")) {
				continue
			}
			key, value, ok := strings.Cut(parameters, "=")
			if !ok || !strings.EqualFold(strings.TrimSpace(key), "q") {
				return 1, true
			}
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !(q >= 0 && q <= 1) {
				q = 0
			}
			return q, true
		}
	}
	return 0, false
}

// Once compresses a file with gzip as well as it can. Nil: that makes it no smaller.
func Once(content []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // there is such a level
	}
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	if out.Len() >= len(content) {
		return nil
	}
	return out.Bytes()
}
