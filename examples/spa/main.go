// Command spa serves a single-page application that signs people in with Signet. The application is app.js; this
// program only hands out its files and settings. docs/guides/single-page.md explains it.
package main

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
)

//go:embed index.html app.js
var files embed.FS

func main() {
	listen := cmp.Or(os.Getenv("LISTEN"), "localhost:3000")
	settings := map[string]string{"issuer": cmp.Or(os.Getenv("ISSUER"), "http://localhost:8080"),
		"clientId": os.Getenv("CLIENT_ID")}
	http.Handle("GET /", http.FileServerFS(files))
	http.HandleFunc("GET /settings.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(settings)
	})
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("Open http://" + listen)
	log.Fatal(http.Serve(listener, nil))
}
