package store_test

import (
	"crypto/sha256"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
)

// Records that come along with a credential are those of that moment, or none; also when another node has changed them.
func TestACredentialNeverBringsARecordFromBefore(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		master := secret.NewMasterKey()
		open := func() *store.Store {
			s, _, err := store.Open(t.Context(), store.Options{Database: db.URL, Kinds: model.Kinds, Master: master})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
		reader := open()
		writer := reader
		if db.Engine == testdb.Postgres {
			writer = open()
		}
		do := func(decide func(tx *event.Tx) error) {
			t.Helper()
			err := writer.Do(t.Context(), event.Command{
				Write:  []event.Ref{org.Kind.Ref("org_1"), user.Kind.Ref("usr_1"), installation.Ref},
				Claims: []event.Claim{org.DomainClaim("a.example"), user.NameClaim("org_1", "ada")},
				Decide: decide,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		hash := sha256.Sum256([]byte("token"))
		do(func(tx *event.Tx) error {
			if _, err := org.Add(tx, "org_1", "A", []string{"a.example"}); err != nil {
				return err
			}
			tx.PutToken(event.Token{ID: "ses_1", Hash: hash[:], Kind: "session", UserID: "usr_1",
				Expires: tx.Now() + 1e12})
			if _, err := installation.Kind.Create(tx, installation.ID, "org_1",
				installation.Added{DefaultOrg: "org_1"}); err != nil {
				return err
			}
			_, err := user.AddHuman(tx, "usr_1", "org_1",
				&user.NewHuman{UserName: "ada", Email: "ada@example.org",
					Profile: user.Profile{FirstName: "Ada", LastName: "L"}})
			return err
		})
		for range 5 {
			rec, err := reader.Record(t.Context(), user.Kind.Ref("usr_1"))
			if err != nil {
				t.Fatal(err)
			}
			b, err := reader.TokenContext(t.Context(), hash[:])
			if err != nil || b == nil || b.User == nil || b.User.Sequence != rec.Sequence ||
				string(b.User.Doc) != string(rec.Doc) {
				t.Fatalf("the record that was just read does not come along: %+v, %v", b, err)
			}
			do(func(tx *event.Tx) error {
				u, err := user.Kind.Get(tx, "usr_1")
				if err != nil {
					return err
				}
				return u.Append(user.PasswordChanged{})
			})
			b, err = reader.TokenContext(t.Context(), hash[:])
			if err != nil || b == nil || b.User != nil && b.User.Sequence != rec.Sequence+1 {
				t.Fatalf("a record from before comes along: %+v, %v", b, err)
			}
			if u, err := user.Kind.Read(t.Context(), reader, "usr_1"); err != nil || u.Sequence != rec.Sequence+1 {
				t.Fatalf("a record from before is read: %+v, %v", u, err)
			}
		}
	})
}
