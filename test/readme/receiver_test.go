package readme

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTheReceiverInTheReferenceChecksSignatures runs the Python of docs/api/webhooks.md.
func TestTheReceiverInTheReferenceChecksSignatures(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no python3")
	}
	text, err := os.ReadFile("../../docs/api/webhooks.md")
	must(t, err)
	block := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(string(text))
	if block == nil {
		t.Fatal("there is no receiver in Python")
	}
	key := []byte("a key of thirty-two bytes or so.")
	_, port, _ := strings.Cut(free(t), ":")
	code := strings.NewReplacer(`"whsec_…"`, `"whsec_`+base64.StdEncoding.EncodeToString(key)+`"`, "9000", port,
		"HTTPServer((", "server = HTTPServer((", ".serve_forever()",
		"; print('ready', flush=True); server.serve_forever()").Replace(block[1])
	receiver := exec.Command(python, "-c", code)
	screen, err := receiver.StdoutPipe()
	must(t, err)
	must(t, receiver.Start())
	t.Cleanup(func() {
		_ = receiver.Process.Kill()
		_ = receiver.Wait()
	})
	if _, err := screen.Read(make([]byte, 6)); err != nil { // ready
		t.Fatal(err)
	}
	now := time.Now().Unix()
	for name, c := range map[string]struct {
		key  []byte
		when int64
		want int
	}{
		"genuine":        {key, now, http.StatusNoContent},
		"another key":    {[]byte("another"), now, http.StatusUnauthorized},
		"an old message": {key, now - 600, http.StatusUnauthorized},
	} {
		if got := post(t, "http://127.0.0.1:"+port+"/signet", c.key, c.when); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// post sends an event as Signet does.
func post(t *testing.T, address string, key []byte, when int64) int {
	t.Helper()
	body := []byte(`{"type":"webhook.test.v1","data":{}}`)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "evt_1.%d.%s", when, body)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(body))
	must(t, err)
	r.Header.Set("webhook-id", "evt_1")
	r.Header.Set("webhook-timestamp", fmt.Sprint(when))
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}
