package importer

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRejectedLinesBehindTheLastNoteAreTakenBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rejected")
	r, err := openRejects(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a file before there is a line")
	}
	noted, err := r.add([]*rejection{{Line: 1, Reason: "A"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.add([]*rejection{{Line: 2, Reason: "B"}}); err != nil {
		t.Fatal(err)
	}
	r.close()
	if r, err = openRejects(path, noted); err != nil {
		t.Fatal(err)
	}
	if _, err := r.add([]*rejection{{Line: 3, Reason: "C"}}); err != nil {
		t.Fatal(err)
	}
	r.close()
	text, err := os.ReadFile(path)
	if want := `{"line":1,"reason":"A","message":""}` + "\n" + `{"line":3,"reason":"C","message":""}` +
		"\n"; err != nil || string(text) != want {
		t.Errorf("%s (%v), want %s", text, err, want)
	}
	if _, err := openRejects(path, int64(len(text))+1); err == nil ||
		!strings.Contains(err.Error(), "shorter than before") {
		t.Errorf("a file that has lost lines: %v", err)
	}
	if _, err := openRejects(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the lines of another import are still there")
	}
}

func TestTheStateIsThereWhenAnImportGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	begin := state{Format: CSV, Size: 100, Org: "org_a"}
	n, err := openNotebook(path, begin)
	if err != nil {
		t.Fatal(err)
	}
	n.Offset, n.Line, n.Imported, n.Rejected = 50, 5, 3, 1
	if err := n.note(); err != nil {
		t.Fatal(err)
	}
	again, err := openNotebook(path, begin)
	if err != nil || again.state != n.state || again.begun {
		t.Errorf("%+v (%v), want %+v", again, err, n.state)
	}
	for name, other := range map[string]state{
		"another size":         {Format: CSV, Size: 101, Org: "org_a"},
		"another format":       {Format: NDJSON, Size: 100, Org: "org_a"},
		"another organization": {Format: CSV, Size: 100},
	} {
		if _, err := openNotebook(path, other); err == nil {
			t.Errorf("%s is gone on with", name)
		}
	}
	if err := again.forget(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("a state that says something was forgotten")
	}
	fresh, err := openNotebook(path+"2", begin)
	if err != nil || fresh.ID == n.ID {
		t.Fatalf("%+v %v", fresh, err)
	}
	if err := fresh.forget(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "2"); err == nil {
		t.Error("a state that says nothing is in the way of the next import")
	}
}

func TestFilesThatAreInEachOthersWay(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"users.csv", "other"} {
		if err := os.WriteFile(at(name), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "users.csv", "device": os.DevNull} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, file, state, rejected, says string }{
		{"none", "users.csv", "users.csv.import", "users.csv.rejected", ""},
		{"a report that is there already", "users.csv", "users.csv.import", "other", ""},
		{"rejected lines in place of the users", "users.csv", "s", "users.csv",
			"is both the file to import and --rejected"},
		{"the same by another name", "users.csv", "s", "link", "is both the file to import and --rejected"},
		{"a state in place of the users", "users.csv", "users.csv", "r", "is both the file to import and --state"},
		{"rejected lines in place of the state", "users.csv", "s", "./s", "is both --state and --rejected"},
		{"a device for the rejected lines", "users.csv", "s", "device", "is not a regular file"},
		{"a device for the state", "users.csv", "device", "r", "is not a regular file"},
		{"a directory of rejected lines", "users.csv", "s", ".", "is a directory"},
		{"a directory of users", ".", "s", "r", "is a directory"},
		{"a pipe", "pipe", "s", "r", "give - as the file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// No Clean: another name of a file stays one.
			err := Import{Path: dir + "/" + c.file, State: dir + "/" + c.state,
				Rejected: dir + "/" + c.rejected}.checkFiles()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func TestAFileIsImportedByOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.csv")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(path); err == nil || !strings.Contains(err.Error(), "is running") {
		t.Errorf("the second one: %v", err)
	}
	first.Close()
	again, err := open(path)
	if err != nil {
		t.Fatalf("after the first one: %v", err)
	}
	again.Close()
}

// TestAnImportIsNotOverBeforeItsRejectedLinesAreOnTheDisk: what is over is never looked at again.
func TestAnImportIsNotOverBeforeItsRejectedLinesAreOnTheDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	notes, err := openNotebook(path, state{Format: CSV})
	if err != nil {
		t.Fatal(err)
	}
	broken := &rejects{path: path + "2"}
	if _, err := broken.add([]*rejection{{Line: 1}}); err != nil {
		t.Fatal(err)
	}
	broken.close()
	if err := (&run{notes: notes, rejected: broken}).end(nil); err == nil {
		t.Error("it ends well")
	}
	if again, err := openNotebook(path, state{Format: CSV}); err != nil || again.Done {
		t.Errorf("%+v %v", again, err)
	}
}
