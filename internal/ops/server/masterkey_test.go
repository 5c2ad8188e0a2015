package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/factor/factortest"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/eventlog/datadir"
	"github.com/signet-idm/signet/internal/eventlog/store"
	"github.com/signet-idm/signet/internal/life/model"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

// home is where a test's installation keeps its data.
func home(t *testing.T, db testdb.Database) Config {
	t.Helper()
	c := Config{Data: Data{DataDir: filepath.Join(t.TempDir(), "data")}, Listen: "localhost:0"}
	if db.Engine == testdb.Postgres {
		c.Database = db.URL
	}
	return c
}

func opened(t *testing.T, c Config) *Server {
	t.Helper()
	s, err := Open(t.Context(), c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type object = map[string]any

// call sends a request to a server and insists on its status.
func (s *Server) call(t *testing.T, status int, token, method, path string, body object) object {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(string(text)))
	if body == nil {
		r = httptest.NewRequestWithContext(t.Context(), method, path, nil)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	answer := object{}
	_ = json.Unmarshal(w.Body.Bytes(), &answer)
	if w.Code != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	return answer
}

func (s *Server) signIn(t *testing.T, org string) string {
	t.Helper()
	return s.call(t, http.StatusOK, "", "POST", "/v1/sessions",
		object{"loginName": "owner", "password": "a password", "orgId": org})["token"].(string)
}

// belongings are what an installation has that hangs on its keys.
type belongings struct {
	org, session         string // an organization, and a session of its owner
	totp                 string
	begun                time.Time
	codes                []any
	provider, page, keys string
}

const (
	nickName     = "nobody else's name"
	clientSecret = "the secret of a provider"
)

func (s *Server) furnish(t *testing.T, admin string) *belongings {
	t.Helper()
	b := &belongings{begun: time.Now()}
	b.org = s.call(t, 200, admin, "POST", "/v1/orgs/_setup", object{
		"org": object{"name": "Acme"},
		"human": object{"userName": "owner", "password": "a password",
			"email":   object{"email": "owner@example.com"},
			"profile": object{"firstName": "Olga", "lastName": "Owner", "nickName": nickName}},
	})["orgId"].(string)
	b.session = s.signIn(t, b.org)
	b.totp = s.call(t, 200, b.session, "POST", "/v1/users/me/factors/totp/_start", object{})["secret"].(string)
	s.call(t, 200, b.session, "POST", "/v1/users/me/factors/totp/_confirm",
		object{"code": factortest.Code(b.totp, b.begun), "name": "Phone"})
	b.codes = s.call(t, 200, b.session, "POST", "/v1/users/me/recovery_codes", object{})["codes"].([]any)
	for _, name := range []string{"one", "two"} {
		b.provider = s.call(t, 200, b.session, "POST", "/v1/idps/oidc",
			object{"name": name, "issuer": "https://oidc.example", "clientId": "c",
				"clientSecret": clientSecret})["idpId"].(string)
	}
	page := s.call(t, 200, b.session, "GET", "/v1/idps?pageSize=1", nil)
	b.page = page["nextPageToken"].(string)
	b.keys = s.keySet(t)
	return b
}

func (s *Server) keySet(t *testing.T) string {
	t.Helper()
	set := s.call(t, 200, "", "GET", "/oauth/keys", nil)
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// stillWorks uses everything once more.
func (b *belongings) stillWorks(t *testing.T, s *Server) {
	t.Helper()
	me := s.call(t, 200, b.session, "GET", "/v1/users/me", nil)
	if text, _ := json.Marshal(me); !strings.Contains(string(text), nickName) {
		t.Errorf("personal data: %s", text)
	}
	session := s.signIn(t, b.org)
	for _, proof := range []object{{"totpCode": factortest.Code(b.totp, b.begun.Add(30*time.Second))},
		{"recoveryCode": b.codes[0]}} {
		s.call(t, 200, session, "POST", "/v1/sessions/_prove", proof)
	}
	if next := s.call(t, 200, b.session, "GET", "/v1/idps?pageSize=1&pageToken="+b.page,
		nil); len(next["idps"].([]any)) != 1 {
		t.Errorf("the next page: %v", next)
	}
	row, err := s.Store().Row(t.Context(), idp.SecretRow(b.provider))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := s.Store().RootKey().Unwrap("idp client secret", row.Value, []byte(b.provider)); err != nil ||
		string(plain) != clientSecret {
		t.Errorf("the secret of a provider: %q, %v", plain, err)
	}
	if got := s.keySet(t); got != b.keys || !strings.Contains(got, "kid") {
		t.Errorf("the key set is %s, and was %s", got, b.keys)
	}
	if _, err := s.keys.Sign(t.Context(), "ES256", "JWT", object{"sub": "usr_a"}); err != nil {
		t.Errorf("signing: %v", err)
	}
}

func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, "signet.db") && name != "log-head" && name != "log-end" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// TestARotationMayBeCutOffAnywhere: the next start finds the key that fits, and everything works as before.
func TestARotationMayBeCutOffAnywhere(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		engine, c := t, home(t, db)
		key, made := filepath.Join(c.DataDir, "master.key"), filepath.Join(c.DataDir, "master.key.new")
		// steps runs the first ones of a rotation.
		steps := func(t *testing.T, n int) {
			t.Helper()
			must(t, maintain(t.Context(), c, quiet, false, true,
				func(ctx context.Context, st *store.Store, _ secret.MasterKey) error {
					dir, err := datadir.Open(c.DataDir, false)
					if err != nil {
						return err
					}
					next, err := dir.NewKey()
					if err == nil && n > 1 {
						err = st.RotateMasterKey(ctx, next)
					}
					if err == nil && n > 2 {
						err = os.Rename(key, key+".old")
					}
					return err
				}))
		}
		s := opened(t, c)
		admin := s.FirstAdmin.Token
		const rest = "first-admin.json lock master.key"
		for _, stage := range []struct {
			name    string
			cut     func(t *testing.T)
			changed bool
			files   string
		}{
			{"half a key", func(t *testing.T) { must(t, os.WriteFile(made, []byte("AAEC"), 0o600)) }, false, rest},
			{"a key that nothing knows of", func(t *testing.T) { steps(t, 1) }, false, rest},
			{"the database has changed, the files have not", func(t *testing.T) { steps(t, 2) }, true,
				rest + " master.key.old"},
			{"the old key has its name, the new one has not", func(t *testing.T) { steps(t, 3) }, true,
				rest + " master.key.old"},
			{"to the end", func(t *testing.T) {
				rotated, err := RotateMasterKey(t.Context(), c, quiet, "")
				must(t, err)
				if rotated.Key != key || rotated.Old != key+".old" {
					t.Errorf("it says %+v", rotated)
				}
			}, true, rest + " master.key.old"},
		} {
			t.Run(stage.name, func(t *testing.T) {
				had := s.furnish(t, admin)
				must(t, s.Close())
				before, err := os.ReadFile(key)
				must(t, err)
				stage.cut(t)
				// Whoever only looks moves nothing, and finds the key all the same.
				left := files(t, c.DataDir)
				must(t, Maintain(t.Context(), c, quiet, true,
					func(ctx context.Context, st *store.Store) error { return st.Ping(ctx) }))
				if now := files(t, c.DataDir); now != left {
					t.Errorf("a look leaves %q of %q", now, left)
				}
				s = opened(engine, c)
				had.stillWorks(t, s)
				if got := files(t, c.DataDir); got != stage.files {
					t.Errorf("the files are %q", got)
				}
				after, err := os.ReadFile(key)
				must(t, err)
				if (string(after) != string(before)) != stage.changed {
					t.Error("the key changed, or it did not")
				}
				if !stage.changed {
					return
				}
				if old, err := os.ReadFile(key + ".old"); err != nil || string(old) != string(before) {
					t.Errorf("the old key is not kept: %v", err)
				}
				must(t, s.Close())
				if _, err := RotateMasterKey(t.Context(), c, quiet, ""); err == nil ||
					!strings.Contains(err.Error(), "from an earlier rotation") {
					t.Errorf("an old key would be written over: %v", err)
				}
				refused := c
				refused.MasterKeyFile = key + ".old"
				if _, err := Open(t.Context(), refused, quiet); !errors.Is(err, store.ErrWrongKey) ||
					!strings.Contains(err.Error(), "after a rotation, use the new one") {
					t.Errorf("the old key: %v", err)
				}
				must(t, os.Remove(key+".old"))
				s = opened(engine, c)
			})
		}
		must(t, s.Close())
		// Two keys of which none fits: nothing is thrown away.
		for _, name := range []string{key, made} {
			must(t, os.WriteFile(name, append(secret.NewMasterKey().Text(), '\n'), 0o600))
		}
		if _, err := Open(t.Context(), c, quiet); !errors.Is(err, store.ErrWrongKey) {
			t.Errorf("wrong keys: %v", err)
		}
		if got := files(t, c.DataDir); got != rest+" master.key.new" {
			t.Errorf("the files are %q", got)
		}
	})
}

var must = testkit.Must

// TestNodesRunOnWhileTheMasterKeyIsRotated on PostgreSQL: they hold the root key.
func TestNodesRunOnWhileTheMasterKeyIsRotated(t *testing.T) {
	db := testdb.New(t, testdb.Postgres)
	first, second := home(t, db), home(t, db)
	a := opened(t, first)
	second.MasterKeyFile = filepath.Join(first.DataDir, "master.key")
	b := opened(t, second)
	had := a.furnish(t, a.FirstAdmin.Token)

	file := filepath.Join(t.TempDir(), "new.key")
	if _, err := RotateMasterKey(t.Context(), first, quiet, ""); !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("the key of a running node would be replaced: %v", err)
	}
	rotated, err := RotateMasterKey(t.Context(), first, quiet, file)
	must(t, err)
	if rotated.Key != file || rotated.Old != "" {
		t.Errorf("it says %+v", rotated)
	}
	had.stillWorks(t, b)
	late := a.furnish(t, a.FirstAdmin.Token)
	must(t, b.Close())
	if _, err := Open(t.Context(), second, quiet); !errors.Is(err, store.ErrWrongKey) {
		t.Errorf("a node with the old key: %v", err)
	}
	if _, err := RotateMasterKey(t.Context(), first, quiet, file+"2"); !errors.Is(err, store.ErrWrongKey) {
		t.Errorf("a rotation with the old key: %v", err)
	}
	if _, err := os.Stat(file + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a refused rotation leaves a key")
	}
	second.MasterKeyFile = file
	b = opened(t, second)
	late.stillWorks(t, b)
}

func TestARotationThatFailsMayBeTriedAgain(t *testing.T) {
	c := home(t, testdb.New(t, testdb.SQLite))
	must(t, opened(t, c).Close())
	must(t, maintain(t.Context(), c, quiet, false, true,
		func(ctx context.Context, st *store.Store, _ secret.MasterKey) error {
			dir, err := datadir.Open(c.DataDir, false)
			must(t, err)
			stopped, stop := context.WithCancel(ctx)
			stop()
			if err := rotateIn(stopped, st, dir); err == nil || !strings.Contains(err.Error(), "try again") {
				t.Errorf("it says: %v", err)
			}
			return nil
		}))
	_, err := RotateMasterKey(t.Context(), c, quiet, "")
	must(t, err)
	must(t, opened(t, c).Close())
}

func TestTheNewKeyIsNeverLost(t *testing.T) {
	c := home(t, testdb.New(t, testdb.SQLite))
	given := secret.NewMasterKey()
	c.MasterKey = string(given.Text())
	must(t, opened(t, c).Close())
	file := filepath.Join(t.TempDir(), "new.key")
	for _, wrong := range []struct{ file, says string }{
		{"", "name a file for the new key with --new-key-file"},
		{string(secret.NewMasterKey().Text()), "takes the name of a file, not a key"},
		{filepath.Join(file, "missing", "key"), "master key file"},
	} {
		if _, err := RotateMasterKey(t.Context(), c, quiet, wrong.file); err == nil ||
			!strings.Contains(err.Error(), wrong.says) || strings.Contains(err.Error(), "=") {
			t.Errorf("%q: %v", wrong.says, err)
		}
	}
	_, err := RotateMasterKey(t.Context(), c, quiet, file)
	must(t, err)
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	c.MasterKey, c.MasterKeyFile = "", file
	if _, err := RotateMasterKey(t.Context(), c, quiet, file); err == nil ||
		!strings.Contains(err.Error(), "already exists") {
		t.Errorf("the key in use would be written over: %v", err)
	}
	must(t, opened(t, c).Close())

	// Of two rotations at a time the second finds that its key is not the one any more.
	path := filepath.Join(c.DataDir, "signet.db")
	key, _, err := secret.LoadOrCreateKeyFile(file, false)
	must(t, err)
	one, _, err := store.Open(t.Context(), store.Options{Database: path, Kinds: model.Kinds, Master: key})
	must(t, err)
	defer one.Close()
	two, _, err := store.Open(t.Context(), store.Options{Database: path, Kinds: model.Kinds, Master: key})
	must(t, err)
	defer two.Close()
	won := secret.NewMasterKey()
	must(t, one.RotateMasterKey(t.Context(), won))
	if err := two.RotateMasterKey(t.Context(), secret.NewMasterKey()); !errors.Is(err, store.ErrWrongKey) {
		t.Errorf("the second: %v", err)
	}
	if fits, err := store.Fits(t.Context(), path, won); err != nil || !fits {
		t.Errorf("the first key is lost: %v", err)
	}
	// The same one may go on.
	must(t, one.RotateMasterKey(t.Context(), secret.NewMasterKey()))
}
