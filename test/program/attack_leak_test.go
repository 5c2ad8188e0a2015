package program

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zitadel/passwap"
	"github.com/zitadel/passwap/argon2"
	"github.com/zitadel/passwap/bcrypt"
	"github.com/zitadel/passwap/pbkdf2"
	"github.com/zitadel/passwap/scrypt"

	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var must = testkit.Must

// copied gives all that is in the database, as somebody has it who has copied it.
func (s *site) copied(t *testing.T) []byte {
	t.Helper()
	var all bytes.Buffer
	if s.Engine == testdb.SQLite {
		must(t, filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasPrefix(d.Name(), "signet.db") {
				var text []byte
				text, err = os.ReadFile(path)
				all.Write(text)
			}
			return err
		}))
		return all.Bytes()
	}
	db := s.open(t)
	defer db.Close()
	tables, err := db.Query("SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()")
	must(t, err)
	var names []string
	for tables.Next() {
		var name string
		must(t, tables.Scan(&name))
		names = append(names, name)
	}
	must(t, tables.Err())
	for _, name := range names {
		rows, err := db.Query("SELECT * FROM " + name)
		must(t, err)
		columns, err := rows.Columns()
		must(t, err)
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		for rows.Next() {
			must(t, rows.Scan(values...))
			for _, value := range values {
				if text, isBytes := (*value.(*any)).([]byte); isBytes {
					all.Write(text)
				} else {
					fmt.Fprintln(&all, *value.(*any))
				}
			}
		}
		must(t, rows.Err())
	}
	return all.Bytes()
}

// wantNothingToGuess: a copy of the database has no hash of a password, nothing of these hashes, and neither these
// codes nor their plain digests.
func wantNothingToGuess(t *testing.T, copied []byte, hashes []string, codes ...string) {
	t.Helper()
	if len(copied) < 10_000 || !bytes.Contains(copied, []byte("user.password_set.v1")) {
		t.Fatalf("it is no copy: %d bytes", len(copied))
	}
	if hash := testkit.PasswordHash.Find(copied); hash != nil {
		t.Errorf("there is a hash that begins with %s", hash)
	}
	for _, hash := range hashes {
		if !testkit.PasswordHash.MatchString(hash) {
			t.Errorf("%s would not be noticed", hash)
		}
		for part := range strings.SplitSeq(hash, "$") {
			if len(part) >= 22 && bytes.Contains(copied, []byte(part)) { // a salt has 16 bytes, which are 22 characters
				t.Errorf("%s is there, of the hash %s", part, hash)
			}
		}
	}
	for _, code := range codes {
		for _, form := range []string{code, strings.ReplaceAll(code, "-", "")} {
			digest := sha256.Sum256([]byte(form))
			for _, kept := range []string{form, string(digest[:]), hex.EncodeToString(digest[:]),
				base64.StdEncoding.EncodeToString(digest[:]), base64.RawURLEncoding.EncodeToString(digest[:])} {
				if bytes.Contains(copied, []byte(kept)) {
					t.Errorf("a code of %d characters is there, or its digest", len(code))
				}
			}
		}
	}
}

// TestAttackWithACopyOfTheDatabase: whoever has it, or a backup, but not the master key, has no password and no code to
// guess at.
func TestAttackWithACopyOfTheDatabase(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t)
		admin := s.admin(t)
		c := newClient(t, p, admin.Token)
		const word = "correct horse battery staple"
		made := at[string](t, c.want(t, 200, "POST", "/v1/users/human", object{
			"userName":         "jo",
			"password":         word,
			"noChangeRequired": true,
			"email":            object{"email": "jo@mail.example"},
			"phone":            object{"phone": "+41445550123"},
			"profile":          object{"firstName": "Jo", "lastName": "Doe"},
		}), "userId")
		c.want(t, 200, "POST", "/v1/users/"+made+"/password", object{"password": word + "!", "noChangeRequired": true})
		suffix := admin.LoginName[strings.Index(admin.LoginName, "@"):]
		me := c.with(c.signIn(t, "jo"+suffix, word+"!"))
		me.want(t, 200, "PUT", "/v1/users/me/password", object{"currentPassword": word + "!", "newPassword": word})
		me = c.with(c.signIn(t, "jo"+suffix, word))
		var hashes []string
		for name, hasher := range map[string]passwap.Hasher{
			"bcrypt":  bcrypt.New(4),
			"scrypt":  scrypt.New(scrypt.Params{N: 1 << 4, R: 8, P: 1, KeyLen: 32, SaltLen: 16}),
			"pbkdf2":  pbkdf2.NewSHA256(pbkdf2.Params{Rounds: 1000, KeyLen: 32, SaltLen: 16}),
			"argon2i": argon2.NewArgon2i(argon2.Params{Time: 1, Memory: 64, Threads: 1, KeyLen: 32, SaltLen: 16}),
		} {
			hash, err := hasher.Hash(word)
			must(t, err)
			hashes = append(hashes, hash)
			for _, user := range []string{name, name + "-idle"} {
				c.want(t, 200, "POST", "/v1/users/_import",
					object{"users": []object{{"userName": user, "passwordHash": hash,
						"email":   object{"address": user + "@mail.example"},
						"profile": object{"firstName": "Im", "lastName": "Ported"}}}})
			}
			c.signIn(t, name+suffix, word) // gets a hash of ours; the other one keeps its own
		}
		var codes []string
		for _, kind := range []string{"email", "phone"} {
			codes = append(codes,
				at[string](t, c.want(t, 200, "POST", "/v1/users/"+made+"/"+kind+"/_create_code", object{}), "code"))
		}
		totp := at[string](t, me.want(t, 200, "POST", "/v1/users/me/factors/totp/_start", object{}), "secret")
		confirmed := me.want(t, 200, "POST", "/v1/users/me/factors/totp/_confirm",
			object{"code": factortest.Code(totp, time.Now())})
		if token, renewed := confirmed["token"].(string); renewed {
			me = c.with(token)
		}
		codes = append(codes, totp)
		for _, code := range at[[]any](t, me.want(t, 200, "POST", "/v1/users/me/recovery_codes", object{}), "codes") {
			codes = append(codes, code.(string))
		}
		device := at[string](t,
			c.want(t, 200, "POST", "/v1/apps",
				object{"name": "TV", "type": "APPLICATION_TYPE_NATIVE",
					"grantTypes": []string{"GRANT_TYPE_DEVICE_CODE"}}), "appId")
		shown := c.form(t, "/oauth/device_authorization", url.Values{"client_id": {device}, "scope": {"openid"}})
		codes = append(codes, at[string](t, shown, "user_code"))
		wantNothingToGuess(t, s.copied(t), hashes, codes...)
		if s.Engine == testdb.SQLite {
			backup := filepath.Join(t.TempDir(), "backup.db")
			s.run(t, "backup", backup).fine(t)
			wantNothingToGuess(t, readFile(t, backup), hashes, codes...)
		}
		if said := s.run(t, "doctor").stdout; !strings.Contains(said, "every password hash is sealed") {
			t.Errorf("signet doctor says:\n%s", said)
		}
		// Everybody signs in, also with another master key.
		p.stop(t)
		s.run(t, "rebuild", "--check").fine(t)
		s.run(t, "master-key", "rotate").fine(t)
		c = newClient(t, s.start(t), admin.Token)
		for _, name := range []string{"jo", "bcrypt", "scrypt-idle", "pbkdf2-idle", "argon2i-idle", "bcrypt-idle"} {
			c.signIn(t, name+suffix, word)
		}
	})
}

// form posts a form, and gives the JSON of the answer.
func (c *client) form(t *testing.T, path string, form url.Values) object {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", c.base+path, strings.NewReader(form.Encode()))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.http.Do(r)
	must(t, err)
	defer resp.Body.Close()
	var answer object
	must(t, json.NewDecoder(resp.Body).Decode(&answer))
	return answer
}
