// Command webhooks receives the events that Signet sends, and checks their signatures. docs/guides/webhooks.md explains
// it.
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// seen are the events that were received before. Keep them in your database, in the transaction that does the work.
var seen sync.Map

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
	if err != nil || len(key) == 0 {
		log.Fatal("set WEBHOOK_SECRET to the secret that Signet showed when the webhook was added: whsec_…")
	}
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "localhost:3000"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /signet", func(w http.ResponseWriter, r *http.Request) { receive(w, r, key) })
	fmt.Println("Listening on", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

func receive(w http.ResponseWriter, r *http.Request, key []byte) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil || !genuine(r.Header, body, key, time.Now()) {
		http.Error(w, "the signature is wrong or too old", http.StatusUnauthorized)
		return
	}
	id := r.Header.Get("webhook-id")
	if _, before := seen.LoadOrStore(id, true); !before { // an event may come twice
		var message struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(body, &message)
		fmt.Println("Received", message.Type, id)
	}
	w.WriteHeader(http.StatusNoContent)
}

// genuine tells whether Signet signed the message within the last five minutes.
func genuine(h http.Header, body, key []byte, now time.Time) bool {
	seconds, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", h.Get("webhook-id"), seconds, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	// There are two signatures while the secret is being replaced.
	return slices.ContainsFunc(strings.Fields(h.Get("webhook-signature")),
		func(s string) bool { return hmac.Equal([]byte(s), []byte(want)) })
}
