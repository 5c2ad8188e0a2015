package oidc_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/signet-idm/signet/test/testdb"
)

// A software vendor with two customers: test/clients/vendor.mjs tells the story.
func TestAVendorWithTwoCustomers(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node is not installed: run this through scripts/with-browser.sh")
	}
	if _, err := os.Stat("../clients/node_modules/openid-client"); err != nil {
		missing(t, "openid-client is not installed: run this through scripts/with-browser.sh")
	}
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		w := open(t, db)
		nodes := w.nodes(db)
		given, err := json.Marshal(map[string]string{"issuer": w.url, "other": nodes[len(nodes)-1].url,
			"callback": callback, "token": w.server.FirstAdmin.Token})
		must(t, err)
		run := exec.CommandContext(t.Context(), node, "vendor.mjs")
		run.Dir, run.Stdin = "../clients", bytes.NewReader(given)
		if said, err := run.CombinedOutput(); err != nil ||
			!strings.HasSuffix(string(said), "the vendor and the customers got what they should\n") {
			t.Errorf("%v\n%s", err, said)
		}
	})
}
