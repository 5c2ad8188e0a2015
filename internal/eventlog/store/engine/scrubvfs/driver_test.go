package scrubvfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// The casts of this package rest on how these versions keep function pointers and C structures. Before you raise one
// here: compare how walFrames writes the log under WAL_WRITE_LOCK, and what seekAndWriteFd does with a long write, and
// run the tests of this package with SIGNET_SCALE=1. The test below compares how functions are called.
func TestTheDriverIsTheOneThatTheCastsAreFor(t *testing.T) {
	text, err := os.ReadFile("../../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"modernc.org/sqlite v1.60.0", "modernc.org/libc v1.77.1"} {
		if !strings.Contains(string(text), "\n\t"+want+"\n") {
			t.Errorf("go.mod does not say %s: see above", want)
		}
	}
}

// used are the functions that this package calls or replaces, by their names in sqlite3_vfs and sqlite3_io_methods.
var used = map[string]reflect.Type{
	"xOpen":     reflect.TypeFor[openFunc](),
	"xWrite":    reflect.TypeFor[writeFunc](),
	"xRead":     reflect.TypeFor[readFunc](),
	"xFileSize": reflect.TypeFor[sizeFunc](),
	"xTruncate": reflect.TypeFor[truncateFunc](),
	"xSync":     reflect.TypeFor[syncFunc](),
	"xClose":    reflect.TypeFor[closeFunc](),
	"xShmLock":  reflect.TypeFor[lockFunc](),
}

// called finds where the driver calls a function of a file or of a file system: the type that it takes the function
// for, and the name. It takes an address for a function in the same way as the function named function.
var called = regexp.MustCompile(`\(\*\(\*(func\([^()]*\) \w+)\)\(unsafe\.Pointer\(&struct\{ uintptr \}\{` +
	`\(\*Tsqlite3_(?:vfs|io_methods)\)\([^{}\n]*\.F(x\w+)\}\)\)\)\(`)

// TestTheDriverCallsFunctionsAsTheyAreDeclaredHere reads the source of the driver for all operating systems, also those
// that no test runs on. The compiler cannot compare: to it both sides are numbers.
func TestTheDriverCallsFunctionsAsTheyAreDeclaredHere(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "modernc.org/sqlite").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "lib", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	same := strings.NewReplacer("Tsqlite3_int64", "int64", "Ti64", "int64", "Tsqlite3_filename", "uintptr")
	calls, addresses := map[string]int{}, 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range called.FindAllSubmatch(text, -1) {
			its, method := same.Replace(string(found[1])), string(found[2])
			calls[method]++
			if want, ok := used[method]; ok && its != want.String() {
				t.Errorf("%s: %s is %s, and here %s", filepath.Base(name), method, its, want)
			}
		}
		// The address of a function is what an interface holds that it was assigned to.
		if strings.Contains(string(text), "func __ccgo_fp(f interface{}) uintptr {\n\ttype iface [2]uintptr\n"+
			"\treturn (*iface)(unsafe.Pointer(&f))[1]\n}") {
			addresses++
		}
	}
	for method := range used {
		if calls[method] == 0 {
			t.Errorf("the driver calls no %s: it has another form, so compare by hand", method)
		}
	}
	if addresses == 0 {
		t.Error("the driver takes the address of a function in another way: compare by hand")
	}
}
