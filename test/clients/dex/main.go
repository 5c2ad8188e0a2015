// Command dex signs people in with dex's connector for OpenID Connect, in the way that dex's server does, and shows
// what the connector finds out.
//
// The rest of dex, its server, is not part of this.
package main

import (
	"encoding/json"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/dexidp/dex/connector"
	"github.com/dexidp/dex/connector/oidc"
)

// relying is the part of dex's server that uses a connector, for one person at a time.
type relying struct {
	connector connector.CallbackConnector
	callback  string

	mu   sync.Mutex
	data []byte // what the connector keeps between both requests
}

func main() {
	issuer, id, secret, base := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	config := &oidc.Config{Issuer: issuer, ClientID: id, ClientSecret: secret, RedirectURI: base + "/callback"}
	opened, err := config.Open("signet", slog.Default())
	if err != nil {
		log.Fatal(err)
	}
	r := &relying{connector: opened.(connector.CallbackConnector), callback: config.RedirectURI}
	http.HandleFunc("/login", r.login)
	http.HandleFunc("/callback", r.shows)
	log.Fatal(http.ListenAndServe(strings.TrimPrefix(base, "http://"), nil))
}

func (r *relying) login(w http.ResponseWriter, q *http.Request) {
	to, data, err := r.connector.LoginURL(connector.Scopes{}, r.callback, "a-state")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.mu.Lock()
	r.data = data
	r.mu.Unlock()
	http.Redirect(w, q, to, http.StatusFound)
}

func (r *relying) shows(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	data := r.data
	r.mu.Unlock()
	found, err := r.connector.HandleCallback(connector.Scopes{}, data, q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(found)
}
