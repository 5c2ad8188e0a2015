package metrics

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/signet-idm/signet/test/testkit"
)

const (
	root      = "../.."
	page      = "docs/operations/metrics.md"
	rulesFile = "packaging/prometheus/signet.rules.yaml"
	dashboard = "packaging/grafana/signet.json"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	testkit.Must(t, err)
	return string(text)
}

// table gives the rows of the table below a heading of the page, without its head.
func table(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	_, rest, found := strings.Cut(read(t, page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %s", page, heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "| `") {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

var quoted = regexp.MustCompile("`([^`]*)`")

func inQuotes(text string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// embeddedOnly tells whether only a node on the embedded database has a metric.
func embeddedOnly(name string) bool { return strings.HasPrefix(name, "signet_backup_") }

// allAreListed compares the page with what there is, in both directions.
func allAreListed(t *testing.T, s *scraped) {
	t.Helper()
	documented := map[string]bool{}
	for _, row := range table(t, "Metrics") {
		name, labels := inQuotes(row[0])[0], inQuotes(row[2])
		documented[name] = true
		slices.Sort(labels)
		switch {
		case s.types[name] == "" && embeddedOnly(name):
		case s.types[name] == "":
			t.Errorf("%s has %s, which does not exist", page, name)
		case s.types[name] != row[1]:
			t.Errorf("%s is a %s, not a %s", name, s.types[name], row[1])
		case !slices.Equal(labels, s.labels(name)):
			t.Errorf("%s has the labels %q, not %q", name, s.labels(name), labels)
		}
	}
	for name := range s.types {
		if !documented[name] && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s does not list %s", page, name)
		}
	}
	if len(documented) < 30 {
		t.Errorf("only %d metrics were found on the page", len(documented))
	}
}

// checkLabels holds every label of ours to its one meaning: the values that the page lists. Where there are too many to
// list, it holds them to what they are by another list.
func checkLabels(t *testing.T, s *scraped) {
	t.Helper()
	reasons := map[string]bool{"": true}
	for line := range strings.Lines(read(t, "docs/api/reasons.txt")) {
		if fields := strings.Fields(line); len(fields) > 0 {
			reasons[fields[0]] = true
		}
	}
	open := map[string]func(value string) bool{
		"operation": regexp.MustCompile(`^(signet\.v1\.[A-Za-z]+/[A-Za-z]+|/[a-z0-9_./*-]*|unknown)$`).MatchString,
		"code":      regexp.MustCompile(`^([A-Z_]+|[1-5][0-9][0-9])$`).MatchString,
		"reason":    func(value string) bool { return reasons[value] },
		"version":   regexp.MustCompile(`^[0-9.]+$`).MatchString,
	}
	listed := map[string]func(value string) bool{}
	for _, row := range table(t, "Labels") {
		label, values := inQuotes(row[0])[0], inQuotes(row[2])
		if listed[label] != nil {
			t.Errorf("%s has the label %s twice", page, label)
		}
		if strings.HasSuffix(row[2], "…") {
			listed[label] = open[label]
		} else {
			listed[label] = func(value string) bool { return slices.Contains(values, value) }
		}
	}
	found := map[string]bool{"le": true}
	for _, one := range s.series {
		if !strings.HasPrefix(one.name, "signet_") {
			continue
		}
		for label, value := range one.labels {
			found[label] = true
			if label != "le" && (listed[label] == nil || !listed[label](value)) {
				t.Errorf("%s: %s=%q is not what %s says about this label", one.text, label, value, page)
			}
		}
	}
	for label := range listed {
		if !found[label] {
			t.Errorf("%s has the label %s, which no metric has", page, label)
		}
	}
}

// query is an expression of PromQL somewhere, and the labels that are used of its result.
type query struct {
	where, expr string
	uses        []string
}

var braced = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}`)

func usedIn(text string) (labels []string) {
	for _, m := range braced.FindAllStringSubmatch(text, -1) {
		labels = append(labels, m[1])
	}
	return labels
}

type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	testkit.Must(t, yaml.Unmarshal([]byte(read(t, rulesFile)), &file))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

type panel struct {
	Title, Type, Description string
	Targets                  []struct{ Expr, LegendFormat string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	var file struct{ Panels []panel }
	testkit.Must(t, json.Unmarshal([]byte(read(t, dashboard)), &file))
	return file.Panels
}

var (
	selector = regexp.MustCompile(`\b(signet_[a-z_]+|go_[a-z_]+|process_[a-z_]+|up)\b(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// ofPrometheus are the labels that Prometheus adds to every series.
var ofPrometheus = []string{"job", "instance"}

// check compares a query with what there is.
func (q query) check(t *testing.T, s *scraped) (names []string) {
	t.Helper()
	labels := slices.Clone(ofPrometheus)
	for _, m := range selector.FindAllStringSubmatch(q.expr, -1) {
		name := s.family(m[1])
		if name == "" && embeddedOnly(m[1]) {
			names = append(names, m[1])
			continue
		}
		if m[1] != "up" && name == "" {
			t.Errorf("%s: there is no metric %s", q.where, m[1])
			continue
		}
		names = append(names, name)
		its := append(s.labels(name), ofPrometheus...)
		if strings.HasSuffix(m[1], "_bucket") {
			its = append(its, "le")
		}
		labels = append(labels, its...)
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(its, l[1]) {
				t.Errorf("%s: %s has no label %s", q.where, m[1], l[1])
			}
			there := slices.ContainsFunc(s.series,
				func(one series) bool { return one.name == name && one.labels[l[1]] == l[3] })
			if l[2] == "=" && !slices.Contains(ofPrometheus, l[1]) && !there {
				t.Errorf("%s: %s never has %s=%q", q.where, m[1], l[1], l[3])
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("%s asks for no metric: %s", q.where, q.expr)
	}
	result := labels
	for _, m := range grouping.FindAllStringSubmatch(q.expr, -1) {
		result = strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")
		for _, label := range result {
			if !slices.Contains(labels, label) {
				t.Errorf("%s: nothing in it has the label %s", q.where, label)
			}
		}
	}
	for _, label := range q.uses {
		if !slices.Contains(result, label) {
			t.Errorf("%s: the result has no label %s", q.where, label)
		}
	}
	return names
}

// allExist checks what the dashboard and the alerts ask for. The dashboard shows everything that there is.
func allExist(t *testing.T, s *scraped) {
	t.Helper()
	shown := map[string]bool{}
	rows := 0
	for _, p := range panels(t) {
		if p.Type == "row" {
			rows++
			continue
		}
		if p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("a panel shows nothing: %+v", p)
		}
		for _, target := range p.Targets {
			for _, name := range (query{"panel " + p.Title, target.Expr, usedIn(target.LegendFormat)}).check(t, s) {
				shown[name] = true
			}
		}
	}
	if rows < 8 {
		t.Errorf("the dashboard has %d rows", rows)
	}
	for name := range s.types {
		if strings.HasPrefix(name, "signet_") && !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	for _, a := range alerts(t) {
		query{"alert " + a.Alert, a.Expr, usedIn(a.Annotations["summary"])}.check(t, s)
	}
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	all := alerts(t)
	if len(all) < 10 {
		t.Errorf("there are %d alerts", len(all))
	}
	seen := map[string]bool{}
	for _, a := range all {
		if seen[a.Alert] {
			t.Errorf("there are two alerts %s", a.Alert)
		}
		seen[a.Alert] = true
		if a.Annotations["summary"] == "" || a.Annotations["action"] == "" ||
			!slices.Contains([]string{"warning", "critical"}, a.Labels["severity"]) {
			t.Errorf("%s lacks a summary, an action or a severity: %q", a.Alert,
				slices.Sorted(maps.Keys(a.Annotations)))
		}
		link, ours := strings.CutPrefix(a.Annotations["runbook_url"], "https://github.com/signet-idm/signet/blob/main/")
		file, anchor, _ := strings.Cut(link, "#")
		if !ours || !slices.Contains(anchors(read(t, file)), anchor) {
			t.Errorf("%s links to %s, where there is nothing", a.Alert, a.Annotations["runbook_url"])
		}
	}
}

// anchors are those of the headings of a page, as GitHub makes them.
func anchors(text string) (all []string) {
	for line := range strings.Lines(text) {
		if title, found := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); found && strings.HasPrefix(line, "#") {
			all = append(all, strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-"))
		}
	}
	return all
}
