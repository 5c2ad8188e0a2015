package oidc_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/test/browser"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

const apacheModules = "/usr/lib/apache2/modules"

// apacheConfig is all that Apache reads besides what docs/guides/apache.md tells people to add. It keeps to a directory
// of its own.
const apacheConfig = `
ServerRoot %[1]s
DefaultRuntimeDir %[1]s
PidFile %[1]s/pid
ErrorLog /dev/stderr
LogLevel notice
StartServers 1
ServerName localhost
Listen 127.0.0.1:%[2]s
User www-data
Group www-data
LoadModule mpm_event_module %[3]s/mod_mpm_event.so
LoadModule authn_core_module %[3]s/mod_authn_core.so
LoadModule authz_core_module %[3]s/mod_authz_core.so
LoadModule authz_user_module %[3]s/mod_authz_user.so
LoadModule include_module %[3]s/mod_include.so
LoadModule auth_openidc_module %[3]s/mod_auth_openidc.so

DocumentRoot %[1]s/www
<Directory %[1]s/www>
	Require all granted
	Options +Includes
	SetOutputFilter INCLUDES
	ForceType text/html
</Directory>
Include %[1]s/openidc.conf
`

const apachePage = `<!DOCTYPE html><title>Inside</title><link rel="icon" href="data:,"><h1><!--#echo var="REMOTE_USER" --></h1>
<p id="sub"><!--#echo var="OIDC_CLAIM_sub" --></p><p id="email"><!--#echo var="OIDC_CLAIM_email" --></p><p id="acr"><!--#echo var="OIDC_CLAIM_acr" --></p>`

// apache runs Apache in the foreground, with pages that only those see who have signed in, and gives its address.
func (w *world) apache(apply func(address string) (id, secret string)) string {
	w.t.Helper()
	program, err := exec.LookPath("apache2")
	if err != nil {
		program = "/usr/sbin/apache2"
	}
	for _, needed := range []string{program, apacheModules + "/mod_auth_openidc.so"} {
		if _, err := os.Stat(needed); err != nil {
			missing(w.t, "Apache with mod_auth_openidc is not installed: run this through scripts/with-apache.sh")
		}
	}
	// The server gives up the rights of root, and has to see its files afterwards.
	dir, err := os.MkdirTemp("/tmp", "signet-apache-")
	must(w.t, err)
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(w.t, os.Chmod(dir, 0o755))
	must(w.t, os.MkdirAll(dir+"/www/inside", 0o755))
	must(w.t, os.WriteFile(dir+"/www/inside/page", []byte(apachePage), 0o644))
	must(w.t, os.WriteFile(dir+"/www/outside",
		[]byte("<!DOCTYPE html><title>Outside</title><link rel=\"icon\" href=\"data:,\"><h1>Outside</h1>"), 0o644))

	port := testkit.FreePort(w.t)
	address := "http://localhost:" + port
	id, secret := apply(address)
	config := filepath.Join(dir, "apache.conf")
	must(w.t, os.WriteFile(config, fmt.Appendf(nil, apacheConfig, dir, port, apacheModules), 0o600))
	documented, err := os.ReadFile("../../docs/guides/apache-openidc.conf")
	must(w.t, err)
	here := strings.NewReplacer("https://id.example.org", w.url, "https://app.example.org", address, "app_01", id,
		"sgn_sec_01", secret)
	must(w.t, os.WriteFile(dir+"/openidc.conf", []byte(here.Replace(string(documented))), 0o600))

	run := exec.Command(program, "-DFOREGROUND", "-f", config)
	said, err := run.StderrPipe()
	must(w.t, err)
	must(w.t, run.Start())
	lines := bufio.NewScanner(said)
	var log []string
	for ready := false; !ready; ready = strings.Contains(lines.Text(), "resuming normal operations") {
		if !lines.Scan() {
			w.t.Fatalf("Apache does not start: %v\n%s", run.Wait(), strings.Join(log, "\n"))
		}
		log = append(log, lines.Text())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
			log = append(log, lines.Text())
		}
	}()
	w.t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM) // it ends its children
		<-done
		_ = run.Wait()
		if w.t.Failed() {
			w.t.Log(strings.Join(log, "\n"))
		}
	})
	return address
}

// A web server that many applications stand behind, as Debian ships it, and a real browser. REMOTE_USER is the person's
// id: the same user name can be somebody else in another organization.
func TestAWebServerThatSignsPeopleIn(t *testing.T) {
	w := open(t, testdb.New(t, testdb.SQLite))
	var id string
	address := w.apache(func(address string) (string, string) {
		var secret string
		id, secret = w.application(app.Web, app.SecretBasic, func(s *app.Settings) {
			s.RedirectURIs, s.PostLogoutURIs, s.ConsentRequired = []string{address + "/inside/callback"},
				[]string{address + "/outside"}, true
		})
		return id, secret
	})
	tab := browser.Start(t).Tab(t)
	signIn := func() {
		t.Helper()
		tab.Open(address + "/inside/page?a=1&b=2")
		tab.Fill("#loginName", w.names[w.userID])
		tab.Submit("button.primary")
		tab.Fill("#password", password)
	}
	signIn()
	tab.Submit("button.primary")
	tab.Click(`button[value="allow"]`)
	tab.WaitUntilAt(address + "/inside/page?a=1&b=2")
	if name, sub, email, acr := tab.Text("h1"), tab.Text("#sub"), tab.Text("#email"),
		tab.Text("#acr"); name != w.userID || sub != w.userID ||
		email != w.names[w.userID]+"@mail.test" || acr != "urn:signet:acr:single" {
		t.Errorf("the page was told %q %q %q %q", name, sub, email, acr)
	}

	// Signing out there signs out here.
	tab.Open(address + "/inside/callback?logout=" + address + "/outside")
	tab.WaitUntilAt(address + "/outside")
	signIn()
	tab.Click("button.primary")
	tab.WaitUntilAt(address + "/inside/page?a=1&b=2") // without asking for consent again
	if said := tab.Complaints(); len(said) > 0 {
		t.Errorf("the browser complains: %q", said)
	}
}
