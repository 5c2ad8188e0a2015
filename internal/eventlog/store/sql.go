package store

import (
	"crypto/subtle"
	"os"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store/engine"
)

// statements are the shared texts that depend on the kinds of objects.
type statements struct {
	record           byKind // objects by id
	version          byKind // id, sequence, hash, shape
	token            [len(lookupSizes)]string
	appToken         [len(lookupSizes)]string // that applications were given
	clientCredential byKind                   // objects with their organization and their secret
}

// byKind holds a text per kind and number of objects.
type byKind map[event.Kind][len(lookupSizes)]string

func newStatements(kinds map[event.Kind]event.Definition, deciding event.TokenKinds) statements {
	st := statements{record: byKind{}, version: byKind{}, clientCredential: byKind{}}
	for i, size := range lookupSizes {
		st.token[i], st.appToken[i] = tokenText(deciding, size, false), tokenText(deciding, size, true)
	}
	for _, k := range kinds {
		var record, version, clientCredential [len(lookupSizes)]string
		for i, size := range lookupSizes {
			from := " FROM " + k.Table() + " s WHERE s.id IN (" + engine.Placeholders(size) + ")"
			record[i], version[i] = "SELECT "+engine.AllColumns(k)+from, "SELECT s.id, s.sequence, s.hash, s.shape"+from
			clientCredential[i] = clientCredentialText(k, deciding[event.TokenOrg], size)
		}
		st.record[k.Name()], st.version[k.Name()], st.clientCredential[k.Name()] = record, version, clientCredential
	}
	return st
}

func constantTimeEqual(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
