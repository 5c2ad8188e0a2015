package program

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

const addressToken = "T000-SECRET-IN-THE-ADDRESS"

// webhookAsBefore leaves a webhook in the data of a stopped server as versions did that recorded its address: in the
// event, and in the state.
func (s *site) webhookAsBefore(t *testing.T, id, url string) (key []byte) {
	t.Helper()
	st, _ := s.store(t)
	key = []byte("0123456789abcdef0123456789abcdef")
	text, err := json.Marshal(map[string]any{"current": key})
	if err != nil {
		t.Fatal(err)
	}
	err = st.Do(t.Context(), event.Command{
		Origin: event.Origin{Actor: event.System},
		Write:  []event.Ref{webhook.Kind.Ref(id)},
		Decide: func(tx *event.Tx) error {
			tx.PutRow(event.Row{RowKey: event.SecretOf(id),
				Value: st.RootKey().Wrap("webhook secret", text, []byte(id))})
			tx.PutRow(event.Row{RowKey: event.RowKey{Table: event.Followers, Key: "webhook/" + id},
				Value: []byte(`{"position":0,"begins":true}`)})
			_, err := webhook.Kind.Create(tx, id, s.admin(t).OrgID,
				webhook.AddedV1{Name: "Old", NameKey: "old", URL: url,
					Selection: webhook.Selection{Types: []string{"app.*"}}})
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	s.tamper(t, `UPDATE webhooks SET shape = 1, doc = '{"state":"active","name":"Old","nameKey":"old","url":"`+url+
		`","types":["app.*"]}' WHERE id = '`+id+`'`)
	return key
}

// The token in the address of a webhook is in nothing that can be read: neither of a webhook that is made now nor of
// one that an older version made.
func TestAttackATokenInTheAddressOfAWebhook(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *site) {
		s.start(t).stop(t)
		r := newHookReceiver(t)
		r.key = s.webhookAsBefore(t, "whk_old", "http://"+r.address+"/hook/"+addressToken)
		p := s.start(t, "--outbound-allow", "127.0.0.1")
		c := newClient(t, p, s.admin(t).Token)
		shown := "http://" + r.address + "/…"

		// It still works, people are told to replace it, and see no more of it than whose it is.
		newApplications(t, c, 1)
		r.await(2)
		p.await(t, "the log contains addresses of webhooks that an older version recorded: if they contain tokens, replace the tokens and set the addresses again")
		got := at[object](t, c.want(t, 200, "GET", "/v1/webhooks/whk_old", nil), "webhook")
		if got["url"] != shown || got["addressInLog"] != true {
			t.Errorf("it reads as %v", got)
		}
		// what is shown is not set by mistake
		c.want(t, 400, "PATCH", "/v1/webhooks/whk_old", object{"url": got["url"], "updateMask": "url"})
		c.want(t, 200, "PATCH", "/v1/webhooks/whk_old",
			object{"url": "http://" + r.address + "/" + addressToken + "/2", "updateMask": "url"})
		made := at[string](t, c.want(t, 200, "POST", "/v1/webhooks",
			object{"name": "New", "url": "http://" + r.address + "/" + addressToken + "/3",
				"types": []string{"idp.*"}}), "webhookId")
		if got := at[object](t, c.want(t, 200, "GET", "/v1/webhooks/whk_old", nil), "webhook"); got["url"] != shown ||
			got["addressInLog"] == true {
			t.Errorf("afterwards it reads as %v", got)
		}
		for _, path := range []string{"/v1/webhooks", "/v1/webhooks/" + made, "/v1/webhooks/whk_old/deliveries",
			"/v1/events?pageSize=500", "/v1/events/_stream?from=2020-01-01T00:00:00Z"} {
			q, err := http.NewRequestWithContext(t.Context(), "GET", c.base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Authorization", "Bearer "+c.token)
			resp, err := c.http.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if strings.Contains(path, "_stream") { // up to the last event of a webhook
				for part := make([]byte, 4096); !strings.Contains(text, made); {
					n, err := resp.Body.Read(part)
					if err != nil {
						t.Fatal(err)
					}
					text += string(part[:n])
				}
			} else {
				all, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				text = string(all)
			}
			resp.Body.Close()
			if resp.StatusCode != 200 || strings.Contains(text, addressToken) {
				t.Errorf("%s: %d %s", path, resp.StatusCode, text)
			}
		}
		p.stop(t)
		if said := p.stderr.String() + p.stdout.String(); strings.Contains(said, addressToken) {
			t.Error("the token is in the log of the server")
		}
		db := s.open(t)
		defer db.Close()
		for query, want := range map[string]int{
			"SELECT count(*) FROM webhooks WHERE doc LIKE '%SECRET%'":                                       0,
			"SELECT count(*) FROM events WHERE type LIKE '%.v2' AND payload LIKE '%SECRET%'":                0,
			"SELECT count(*) FROM events WHERE type = 'webhook.added.v1' AND object_id = 'whk_old'":         1,
			"SELECT count(*) FROM events WHERE type IN ('webhook.added.v2', 'webhook.settings_changed.v2')": 2,
		} {
			var n int
			if err := db.QueryRow(query).Scan(&n); err != nil || n != want {
				t.Errorf("%s: %d, want %d (%v)", query, n, want, err)
			}
		}
		s.run(t, "rebuild", "--check").fine(t)
		s.verified(t)
	})
}
