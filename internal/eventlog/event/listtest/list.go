package listtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/storetest"
	"github.com/signet-idm/signet/test/testkit"
)

var listChecks = []check{
	{name: "a list has each object once, in order", test: listOrder},
	{name: "a list follows its column by bytes", test: listByColumn},
	{name: "a prefix finds what begins with it and nothing else", test: listPrefix},
	{name: "a name longer than its column is found by what is left of it", test: listLongNames},
	{name: "a list has what belongs to one organization", test: listOrganizations},
	{name: "what is removed is in no list", test: listRemoved},
	{name: "what is counted is what is there", test: counting},
	{name: "a list stays whole while objects come and go", test: listMoving},
	{name: "conditions choose among objects", test: listWhere},
	{name: "a page looks at a bounded number of objects", test: listBounded},
	{name: "a list refuses columns that are not there", test: listUnknown},
	{name: "objects from before there were lists are listed", test: listFromBefore},
}

// readAll reads a list to its end in pages of a size.
func readAll(t *testing.T, n storetest.Node, q event.Query, size int) (all []*event.Record) {
	t.Helper()
	q.Limit = size
	for pages := 0; ; pages++ {
		if pages > 10000 {
			t.Fatal("the list has no end")
		}
		page, err := n.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Records) > size {
			t.Fatalf("%d objects on a page of %d", len(page.Records), size)
		}
		all = append(all, page.Records...)
		if page.Next == nil {
			return all
		}
		q.After = *page.Next
	}
}

func ids(records []*event.Record) []string {
	all := make([]string, len(records))
	for i, r := range records {
		all[i] = r.ID
	}
	return all
}

// wantList reads a list in pages of several sizes.
func wantList(t *testing.T, n storetest.Node, q event.Query, want ...string) {
	t.Helper()
	for _, size := range []int{1, 2, 3, 100} {
		if got := ids(readAll(t, n, q, size)); !slices.Equal(got, want) {
			t.Errorf("%+v in pages of %d:\n got %q\nwant %q", q, size, got, want)
		}
	}
}

func listOrder(t *testing.T, e *env) {
	n := e.open(t)
	wantList(t, n, event.Query{Kind: "user", Org: "org_1"})
	want := make([]string, 7)
	for i := range want {
		want[i] = fmt.Sprintf("usr_%02d", i)
	}
	for _, i := range []int{3, 0, 6, 2, 5, 1, 4} {
		must(t, n, addUser(want[i], fmt.Sprint("name", (i*3)%7)))
	}
	wantList(t, n, event.Query{Kind: "user", Org: "org_1"}, want...)
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "user_name"}, "usr_00", "usr_05", "usr_03", "usr_01",
		"usr_06", "usr_04", "usr_02")
	// A page is what Record gives, to the byte.
	page, err := n.List(t.Context(), event.Query{Kind: "user", Org: "org_1", Limit: 3})
	if err != nil || len(page.Records) != 3 || page.Next == nil {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, r := range page.Records {
		single, err := n.Record(t.Context(), r.Ref)
		if err != nil || !single.Equal(r) {
			t.Errorf("the list has %+v, the object is %+v, %v", r, single, err)
		}
	}
	objects, next, err := users.List(t.Context(), n, event.Query{Org: "org_1", Limit: 2})
	if err != nil || len(objects) != 2 || next == nil || objects[1].Data.Name != "name3" || objects[1].ID != "usr_01" {
		t.Errorf("%+v, %+v, %v", objects, next, err)
	}
	// A change moves what it must: the columns are those of the state.
	must(t, n, rename("usr_03", "aaa"))
	must(t, n, count("usr_03"))
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "user_name", Prefix: "a"}, "usr_03")
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "name", Prefix: "the a"}, "usr_03")
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "email", Prefix: "aaa@"}, "usr_03")
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "user_name", Prefix: "name2"})
}

// Names that a database with an order of letters of its own would sort in another way.
var names = []string{"", " ", "!", "A", "Z", "_", "a", "a ", "a!", "aa", "ab", "b", "ba", "z", "~", "é", "ß", "я",
	"\ud7ff", "\ud7ffx", "\ue000", "\ufffd", "\uffff",
	"\U00010000", "\U0001F642", "\U0010FFFF", "\U0010FFFF\U0010FFFF", "\U0010FFFFa"}

func listByColumn(t *testing.T, e *env) {
	n := e.open(t)
	sorted := slices.Sorted(slices.Values(names)) // Go compares bytes
	want := make([]string, len(sorted))
	for i, name := range sorted {
		want[i] = fmt.Sprintf("usr_%02d", (i*11)%len(sorted))
		must(t, n, addUser(want[i], name))
	}
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "user_name"}, want...)
}

func listPrefix(t *testing.T, e *env) {
	n := e.open(t)
	sorted := slices.Sorted(slices.Values(names))
	byName := map[string]string{}
	for i, name := range sorted {
		byName[name] = fmt.Sprintf("usr_%02d", i)
		must(t, n, addUser(byName[name], name))
	}
	for _, prefix := range append([]string{"x", "ab", "abc", "%", "\\", "'", "\ud7ff", "\ue000", "\U0010FFFF",
		"a\U0010FFFF"}, names...) {
		var want []string
		for _, name := range sorted {
			if strings.HasPrefix(name, prefix) {
				want = append(want, byName[name])
			}
		}
		wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "user_name", Prefix: prefix}, want...)
	}
}

func listLongNames(t *testing.T, e *env) {
	n := e.open(t)
	common := strings.Repeat("ä", 127) + "xyz" // 257 bytes: the column holds all but the last
	wide := strings.Repeat("x", event.MaxLookup-1) + "ä"
	for i, name := range []string{common, common + "a", common + "b", common + strings.Repeat("c", 1000),
		strings.Repeat("ä", 127) + "a", wide, wide + "b"} {
		must(t, n, addUser(fmt.Sprint("usr_", i), name))
	}
	q := event.Query{Kind: "user", Org: "org_1", By: "user_name"}
	for prefix, want := range map[string][]string{
		// what differs behind the end cannot be told apart
		common:                   {"usr_0", "usr_1", "usr_2", "usr_3"},
		common + "b":             {"usr_0", "usr_1", "usr_2", "usr_3"},
		strings.Repeat("ä", 127): {"usr_4", "usr_0", "usr_1", "usr_2", "usr_3"},
		wide:                     {"usr_5", "usr_6"},
	} {
		q.Prefix = event.LookupText(prefix)
		wantList(t, n, q, want...)
	}
	q.Prefix = ""
	wantList(t, n, q, "usr_5", "usr_6", "usr_4", "usr_0", "usr_1", "usr_2", "usr_3")
	verify(t, n)
}

func listOrganizations(t *testing.T, e *env) {
	n := e.open(t)
	for i := range 9 {
		must(t, n, addUserTo(fmt.Sprint("org_", i%3), fmt.Sprint("usr_", i), "same"+fmt.Sprint(i/3)))
	}
	must(t, n, addOrg("org_0", "zero"))
	must(t, n, addOrg("org_1", "one"))
	must(t, n, addOrg("org_2", "zero"))
	wantList(t, n, event.Query{Kind: "user", Org: "org_1"}, "usr_1", "usr_4", "usr_7")
	wantList(t, n, event.Query{Kind: "user", Org: "org_2", By: "user_name", Prefix: "same"}, "usr_2", "usr_5", "usr_8")
	wantList(t, n, event.Query{Kind: "user", Org: "org_2", Where: map[string]string{"type": "new"}}, "usr_2",
		"usr_5", "usr_8")
	wantList(t, n, event.Query{Kind: "user", Org: "org_x"})
	// A cursor of one organization leads to nothing in another.
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", After: event.Cursor{ID: "usr_5"}}, "usr_7")
	wantList(t, n, event.Query{Kind: "org"}, "org_0", "org_1", "org_2")
	wantList(t, n, event.Query{Kind: "org", By: "name"}, "org_1", "org_0", "org_2")
	wantList(t, n, event.Query{Kind: "org", By: "name", Prefix: "z"}, "org_0", "org_2")
	wantList(t, n, event.Query{Kind: "user", By: "user_name", Prefix: "same0"}, "usr_0", "usr_1", "usr_2")
}

func listRemoved(t *testing.T, e *env) {
	n := e.open(t)
	for i := range 5 {
		must(t, n, addUser(fmt.Sprint("usr_", i), fmt.Sprint("name", i)))
	}
	must(t, n, tag("usr_2", "red"))
	must(t, n, remove("usr_2"))
	for _, q := range []event.Query{{}, {By: "user_name"}, {By: "user_name", Prefix: "name"},
		{Where: map[string]string{"type": "new"}}, {By: "name"},
		{Where: map[string]string{event.State: "active"}}} {
		q.Kind, q.Org = "user", "org_1"
		wantList(t, n, q, "usr_0", "usr_1", "usr_3", "usr_4")
	}
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", Where: map[string]string{event.State: event.Removed}})
	wantList(t, n, event.Query{Kind: "user", Group: "red"})
}

// listMoving changes the list between its pages: what was there all the time is listed once.
func listMoving(t *testing.T, e *env) {
	for name, q := range map[string]event.Query{
		"by identifier": {}, "by name": {By: "user_name"}, "by name with a prefix": {By: "user_name", Prefix: "n"},
		"with a condition":         {Where: map[string]string{"type": "new"}},
		"by name with a condition": {By: "user_name", Where: map[string]string{"type": "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := e.open(t)
			prefix := strings.ReplaceAll(name, " ", "_")
			at := func(i int) (id, userName string) {
				return fmt.Sprintf("usr_%s_%03d", prefix, i), fmt.Sprintf("n%s_%03d", prefix, i)
			}
			added := map[int]bool{}
			add := func(i int) {
				if id, userName := at(i); i > 0 && i < 40 && !added[i] {
					added[i] = true
					must(t, n, addUserTo(prefix, id, userName))
				}
			}
			for i := 2; i < 40; i += 2 {
				add(i)
			}
			q := q
			q.Kind, q.Org, q.Limit = "user", prefix, 4
			seen := map[string]int{}
			for page := 0; ; page++ {
				got, err := n.List(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range got.Records {
					seen[r.ID]++
				}
				if got.Next == nil {
					break
				}
				q.After = *got.Next
				// One comes before the place where the list is, one behind it, and the last one seen goes.
				add(page*8 + 1)
				add(39 - page*4)
				must(t, n, remove(got.Records[len(got.Records)-1].ID))
			}
			for i := 2; i < 40; i += 2 {
				if id, _ := at(i); seen[id] != 1 {
					t.Errorf("%s is listed %d times", id, seen[id])
				}
			}
			for id, times := range seen {
				if times > 1 {
					t.Errorf("%s is listed %d times", id, times)
				}
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func listWhere(t *testing.T, e *env) {
	n := e.open(t)
	for i := range 8 {
		id := fmt.Sprint("usr_", i)
		must(t, n, addUser(id, fmt.Sprint("name", 9-i)))
		if i%3 == 0 {
			must(t, n, count(id))
		}
		must(t, n, tag(id, "red"))
	}
	counted := map[string]string{"type": "counted"}
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", Where: counted}, "usr_0", "usr_3", "usr_6")
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "user_name", Where: counted}, "usr_6", "usr_3", "usr_0")
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "user_name", Prefix: "name6", Where: counted}, "usr_3")
	wantList(t, n, event.Query{Kind: "user", Org: "org_1", By: "user_name", Prefix: "name5", Where: counted})
	wantList(t, n, event.Query{Kind: "user", Org: "org_1",
		Where: map[string]string{"type": "counted", "user_name": "name3"}}, "usr_6")
	wantList(t, n, event.Query{Kind: "user", Org: "org_1",
		Where: map[string]string{"type": "new", "user_name": "name3"}})
	wantList(t, n, event.Query{Kind: "user", Org: "org_1",
		Where: map[string]string{"type": "counted", event.State: "active", "email": "name9@mail"}}, "usr_0")
	wantList(t, n, event.Query{Kind: "user", Group: "red", Where: counted}, "usr_0", "usr_3", "usr_6")
	// A condition compares the value, and knows no patterns.
	for _, value := range []string{"", "%", "COUNTED", "counted ", "' OR ''='"} {
		wantList(t, n, event.Query{Kind: "user", Org: "org_1", Where: map[string]string{"type": value}})
	}
}

// listBounded has rare objects among more than a page looks at: it may be empty and still be followed by another.
func listBounded(t *testing.T, e *env) {
	n := e.open(t)
	const all = 4500
	id := func(i int) string { return fmt.Sprintf("usr_%05d", i) }
	for from := 0; from < all; from += 250 {
		some := map[string]thing{}
		for i := from; i < from+250; i++ {
			some[id(i)] = thing{Name: fmt.Sprintf("name%05d", all-i), Tags: []string{"red"}}
		}
		must(t, n, add("org_1", some))
	}
	rare := []int{0, 1999, 2000, 2001, 3999, 4000, 4499}
	for _, i := range rare {
		must(t, n, count(id(i)))
	}
	var want []string
	for _, i := range rare {
		want = append(want, id(i))
	}
	reversed := slices.Clone(want)
	slices.Reverse(reversed)
	none := map[string]string{"type": "nothing"}
	counted := map[string]string{"type": "counted"}
	for _, x := range []struct {
		q    event.Query
		want []string
	}{
		{event.Query{Org: "org_1", Where: counted}, want},
		{event.Query{Org: "org_1", By: "user_name", Where: counted}, reversed},
		{event.Query{Org: "org_1", By: "user_name", Prefix: "name", Where: counted}, reversed},
		{event.Query{Group: "red", Where: counted}, want},
		{event.Query{Org: "org_1", Where: none}, nil},
	} {
		x.q.Kind = "user"
		for _, size := range []int{1, 3, 500} {
			if got := ids(readAll(t, n, x.q, size)); !slices.Equal(got, x.want) {
				t.Errorf("%+v in pages of %d:\n got %q\nwant %q", x.q, size, got, x.want)
			}
		}
	}
	page, err := n.List(t.Context(), event.Query{Kind: "user", Org: "org_1", Where: none, Limit: 10})
	if err != nil || len(page.Records) != 0 || page.Next == nil {
		t.Errorf("a page without objects among many: %+v, %v", page, err)
	}
	// While pages are read, what is looked at moves: nothing falls between two pages.
	for _, q := range []event.Query{{Org: "org_1"}, {Org: "org_1", By: "user_name"}, {Group: "red"}} {
		q.Kind, q.Where = "user", counted
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 100; i < all; i += 7 {
				select {
				case <-stop:
					return
				default:
				}
				if i%1000 < 10 || slices.Contains(rare, i) {
					continue
				}
				if err := n.Do(context.Background(), remove(id(i))); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		for range 5 {
			got := ids(readAll(t, n, q, 2))
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%+v while others go: %q", q, got)
			}
		}
		close(stop)
		testkit.Receive(t, stopped, "who removes has stopped")
	}
}

func listUnknown(t *testing.T, e *env) {
	n := e.open(t)
	for _, q := range []event.Query{
		{Kind: "alien"}, {Kind: "user", By: "doc"}, {Kind: "user", By: "x; DROP TABLE users"},
		{Kind: "user", Where: map[string]string{"shape": "1"}},
		{Kind: "org", By: "email"}, {Kind: "sign_in"},
		{Kind: "user", Where: map[string]string{"type": "new", "id": "x"}},
	} {
		q.Limit = 1
		if _, err := n.List(t.Context(), q); err == nil {
			t.Errorf("%+v is taken", q)
		}
	}
}

// listFromBefore: a database of the version before gets its columns, and its objects are in the lists after the first
// start.
func listFromBefore(t *testing.T, e *env) {
	before := e.openWith(t, e.subject.OpenBefore, oldUsers)
	const all = 230 // more than are folded anew in one step
	for i := range all {
		id := fmt.Sprintf("usr_%03d", i)
		must(t, before, event.Command{Write: []event.Ref{oldUsers.Ref(id)}, Decide: func(tx *event.Tx) error {
			_, err := oldUsers.Create(tx, id, "org_1",
				userSet{Name: fmt.Sprint("name", all-i), Tags: []string{"red"}, Removed: i == 0})
			return err
		}})
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start finds nothing to do
		n := e.open(t)
		got, _ := found(t, n, "org_1", "name7", 100)
		if slices.Sort(got); !slices.Equal(got,
			[]string{"usr_151", "usr_152", "usr_153", "usr_154", "usr_155", "usr_156", "usr_157", "usr_158", "usr_159",
				"usr_160", "usr_223"}) {
			t.Errorf("found: %q", got)
		}
		for _, q := range []event.Query{{Org: "org_1"}, {Org: "org_1", By: "user_name", Prefix: "name"},
			{Org: "org_1", Where: map[string]string{"type": "new"}}, {Group: "red"}} {
			q.Kind = "user"
			want := all - 1
			if q.Group != "" {
				want = all // of a group, what is removed is listed, too
			}
			if got := readAll(t, n, q, 100); len(got) != want {
				t.Errorf("%+v: %d objects", q, len(got))
			}
		}
		verify(t, n)
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// counting counts all objects of an organization, and a part of them.
func counting(t *testing.T, e *env) {
	n := e.open(t)
	all := event.Counted{Kind: "user", Org: "org_1"}
	part := event.Counted{Kind: "user", Org: "org_1", Column: "type", Value: "counted"}
	want := func(counts ...int64) {
		t.Helper()
		got, err := n.Count(t.Context(), []event.Counted{all, {Kind: "user", Org: "org_2"}, part})
		if err != nil || !slices.Equal(got, counts) {
			t.Errorf("got %d, want %d, %v", got, counts, err)
		}
	}
	want(0, 0, 0)
	for i := range 9 {
		must(t, n, addUserTo(fmt.Sprint("org_", 1+i%3/2), fmt.Sprint("usr_", i), fmt.Sprint("name", i)))
	}
	want(6, 3, 0)
	must(t, n, count("usr_0"))
	must(t, n, count("usr_1"))
	must(t, n, count("usr_2")) // of another organization
	want(6, 3, 2)
	must(t, n, remove("usr_3"))
	want(5, 3, 2)
	must(t, n, remove("usr_2"))
	want(5, 2, 2)
	for _, wrong := range []event.Counted{{Kind: "nothing"}, {Kind: "sign_in"},
		{Kind: "user", Column: "nothing", Value: "x"}, {Kind: "user", Column: "type"},
		{Kind: "user", Column: "type", Value: "a' OR 'a' = 'a"}} {
		if got, err := n.Count(t.Context(), []event.Counted{wrong}); err == nil {
			t.Errorf("%+v: %d", wrong, got)
		}
	}
	if got, err := n.Count(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("nothing: %d, %v", got, err)
	}
}
