package listtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/storetest"
)

var searchChecks = []check{
	{name: "objects are found by the beginnings of their words", test: searchWords},
	{name: "words follow the state", test: searchLife},
	{name: "a search has few pages", test: searchBounded},
	{name: "several objects are read at once", test: severalRecords},
}

// found reads all pages of a search, and says how many there were.
func found(t *testing.T, n storetest.Node, org, query string, size int) (ids []string, pages int) {
	t.Helper()
	words, _ := syntax.QueryWords(query)
	q := event.Search{Kind: "user", Org: org, Words: words, Limit: size}
	for {
		page, err := n.Search(t.Context(), q)
		if err != nil {
			t.Fatalf("searching %q: %v", query, err)
		}
		if pages++; len(page.Records) > size {
			t.Fatalf("a page of %d has %d", size, len(page.Records))
		}
		for _, r := range page.Records {
			ids = append(ids, r.ID)
		}
		if page.Next == nil {
			return ids, pages
		}
		q.After = *page.Next
	}
}

// wantFound looks for words in pages of all sizes.
func wantFound(t *testing.T, n storetest.Node, org, query string, want ...string) {
	t.Helper()
	for _, size := range []int{1, 2, 3, 100} {
		if got, _ := found(t, n, org, query, size); !slices.Equal(got, want) {
			t.Errorf("%q in %q by %d: got %q, want %q", query, org, size, got, want)
		}
	}
}

func searchWords(t *testing.T, e *env) {
	n := e.open(t)
	for i, name := range []string{"Anna.Schmidt@Example.com", "Annabelle Anders", "Jörg Schmid-Müller", "anna"} {
		must(t, n, addUser(fmt.Sprint("usr_", i+1), name))
	}
	must(t, n, addUserTo("org_2", "usr_5", "anna of another organization"))
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"a", []string{"usr_2", "usr_1", "usr_4"}}, // anders, anna, anna: once each
		{"ANNA", []string{"usr_1", "usr_4", "usr_2"}},
		{"anna.sch", []string{"usr_1"}},
		{"schmid", []string{"usr_3", "usr_1"}},
		{"sch mü", []string{"usr_3"}},
		{"mü sch", []string{"usr_3"}},
		{"jo\u0308rg", []string{"usr_3"}},
		{"example.com", []string{"usr_1"}},
		{"@example", []string{"usr_1"}},
		{"com exam", []string{"usr_1"}},
		{"ann anna", []string{"usr_1", "usr_4", "usr_2"}}, // one word has both
		{"chmidt", nil},
		{"anna jörg", nil},
		{"of", nil},
	} {
		wantFound(t, n, "org_1", c.query, c.want...)
	}
	wantFound(t, n, "", "anna", "usr_5", "usr_1", "usr_4", "usr_2") // by the term, one organization after the other
	wantFound(t, n, "org_2", "anna", "usr_5")
	wantFound(t, n, "org_3", "anna")
	// nobody is found by what cannot be stored
	for _, words := range [][]string{nil, {""}, {"a\x00"}, {"\xff"}, {"a", ""}} {
		if page, err := n.Search(t.Context(), event.Search{Kind: "user", Words: words, Limit: 10}); err != nil ||
			len(page.Records) > 0 || page.Next != nil {
			t.Errorf("%q: %v, %v", words, page, err)
		}
	}
	if _, err := n.Search(t.Context(), event.Search{Kind: "nothing", Words: []string{"a"}, Limit: 1}); err == nil {
		t.Error("an unknown kind is searched")
	}
	verify(t, n)
}

func searchLife(t *testing.T, e *env) {
	n := e.open(t)
	must(t, n, addUser("usr_1", "anna berg"))
	must(t, n, rename("usr_1", "anna cool"))
	wantFound(t, n, "org_1", "anna", "usr_1")
	wantFound(t, n, "org_1", "berg")
	wantFound(t, n, "org_1", "cool", "usr_1")
	// Back and forth in one command leaves what the last step says.
	must(t, n, change("usr_1", func(s *thing) { s.Name = "x" }, func(s *thing) { s.Name = "anna berg" }))
	wantFound(t, n, "org_1", "berg", "usr_1")
	wantFound(t, n, "org_1", "x")
	wantFound(t, n, "org_1", "cool")
	must(t, n, tag("usr_1", "red")) // no name changes
	wantFound(t, n, "org_1", "anna", "usr_1")
	// More words than are kept, and longer ones.
	must(t, n, rename("usr_1", strings.Repeat("w", 500)+" "+func() (s string) {
		for i := range 200 {
			s += fmt.Sprintf("n%03d ", i)
		}
		return s
	}()))
	wantFound(t, n, "org_1", "n001", "usr_1")
	wantFound(t, n, "org_1", "n199")
	wantFound(t, n, "org_1", strings.Repeat("w", 400), "usr_1")
	verify(t, n)
	must(t, n, remove("usr_1"))
	for _, word := range []string{"anna", "n001", "w"} {
		wantFound(t, n, "org_1", word)
	}
	verify(t, n)
}

func searchBounded(t *testing.T, e *env) {
	n := e.open(t)
	const all = 5000
	for first := 0; first < all; first += 500 {
		some := map[string]thing{}
		for i := first; i < first+500; i++ {
			name := "even twin"
			if i%2 == 1 {
				name = "odd twin"
			}
			if i == all-1 {
				name += " rare"
			}
			some[fmt.Sprintf("usr_%04d", i)] = thing{Name: name}
		}
		must(t, n, add("org_1", some))
	}
	for _, c := range []struct {
		query        string
		found, pages int
	}{
		{"twin", all, 50},
		{"twin rare", 1, 1},
		{"rare odd", 1, 1},
		{"rare even", 0, 1},
		{"even odd", 0, 1}, // nobody is both, and 2,500 have to be looked at for it
		{"nobody twin", 0, 1},
	} {
		for _, org := range []string{"org_1", ""} {
			ids, pages := found(t, n, org, c.query, 100)
			if slices.Sort(ids); len(slices.Compact(ids)) != c.found || pages > c.pages+1 || pages < c.pages {
				t.Errorf("%q in %q: %d in %d pages, want %d in %d", c.query, org, len(ids), pages, c.found, c.pages)
			}
		}
	}
}

func severalRecords(t *testing.T, e *env) {
	n := e.open(t)
	var refs []event.Ref
	for first := 0; first < 300; first += 100 {
		some := map[string]thing{}
		for i := first; i < first+100; i++ {
			id := fmt.Sprintf("usr_%03d", i)
			some[id], refs = thing{Name: id}, append(refs, users.Ref(id), users.Ref("usr_none"+id))
		}
		must(t, n, add("org_1", some))
	}
	must(t, n, addOrg("org_1", "first"))
	refs = append(refs, orgs.Ref("org_1"), users.Ref("\x00"), users.Ref(strings.Repeat("x", 500)))
	for range 2 { // the second time they were seen before
		got, err := n.Records(t.Context(), refs)
		if err != nil || len(got) != 301 || got[orgs.Ref("org_1")] == nil {
			t.Fatalf("%d of 301: %v", len(got), err)
		}
		for ref, r := range got {
			if r.Ref != ref {
				t.Errorf("%v is %v", ref, r.Ref)
			}
		}
	}
	must(t, n, rename("usr_007", "other"))
	got, err := n.Records(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := users.Open(got[users.Ref("usr_007")]); err != nil || u.Data.Name != "other" {
		t.Errorf("%+v, %v", u, err)
	}
}
