package importer

import (
	"os"
	"path/filepath"
	"strings"
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
	if want := `{"line":1,"reason":"A","message":""}` + "\n" + `{"line":3,"reason":"C","message":""}` + "\n"; err != nil || string(text) != want {
		t.Errorf("%s (%v), want %s", text, err, want)
	}
	if _, err := openRejects(path, int64(len(text))+1); err == nil || !strings.Contains(err.Error(), "less in it") {
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
