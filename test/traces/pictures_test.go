//go:build pictures

package traces

import (
	"cmp"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/ops/server"
	"github.com/signet-idm/signet/test/testdb"
)

const directory = "../../docs/operations/pictures"

// TestTracePictures draws an UpdateMyProfile and a sign-in that waits behind others for its password to be hashed.
func TestTracePictures(t *testing.T) {
	w := open(t, testdb.Database{}, 1, func(c *server.Config) { c.Hasher = secret.NewHasher(1, 0) })
	rest := callers[0]
	token := w.signIn(t, rest, "first")
	for i := range 20 { // until everything is warm
		w.updateProfile(t, rest, token, fmt.Sprint("warm-", i))
	}
	w.updateProfile(t, rest, token, "profile")
	draw(t, "update-my-profile", "UpdateMyProfile over REST, embedded database", w.collector.trace(t, "profile"))
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() { w.signIn(t, rest, fmt.Sprint("crowd-", i)) })
	}
	all.Wait()
	slowest := slices.MaxFunc(roots(w.collector, t),
		func(a, b []*tracepb.Span) int { return cmp.Compare(length(a[0]), length(b[0])) })
	draw(t, "slow-sign-in", "A slow sign-in: twelve people sign in at once, and one password is hashed at a time", slowest)
}

func roots(c *collector, t *testing.T) (traces [][]*tracepb.Span) {
	for i := range 12 {
		traces = append(traces, c.trace(t, fmt.Sprint("crowd-", i)))
	}
	return traces
}

func length(s *tracepb.Span) time.Duration {
	return time.Duration(s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano())
}

// Measures of a picture, in pixels.
const (
	rowHeight, labels, bars, margin = 24, 330, 480, 16
)

// draw writes a waterfall: a row for each span, in the order of their start, indented by depth.
func draw(t *testing.T, name, title string, spans []*tracepb.Span) {
	t.Helper()
	root := spans[0]
	children := map[string][]*tracepb.Span{}
	for _, s := range spans[1:] {
		children[string(s.GetParentSpanId())] = append(children[string(s.GetParentSpanId())], s)
	}
	var rows strings.Builder
	row := 0
	var add func(s *tracepb.Span, depth int)
	add = func(s *tracepb.Span, depth int) {
		y := 64 + row*rowHeight
		row++
		scale := float64(bars) / float64(length(root))
		x := margin + labels + float64(s.GetStartTimeUnixNano()-root.GetStartTimeUnixNano())*scale
		wide := max(1.5, float64(length(s))*scale)
		fmt.Fprintf(&rows, `<text x="%d" y="%d">%s</text><rect class="d%d" x="%.1f" y="%d" width="%.1f" height="14" rx="2"/><text class="time" x="%d" y="%d">%s</text>`+"\n",
			margin+depth*14, y, html.EscapeString(strings.TrimPrefix(s.GetName(), "signet.v1.")), min(depth, 3), x,
			y-11, wide, margin+labels+bars+80, y, duration(length(s)))
		below := children[string(s.GetSpanId())]
		slices.SortStableFunc(below, func(a, b *tracepb.Span) int {
			return cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano())
		})
		for _, c := range below {
			add(c, depth+1)
		}
	}
	add(root, 0)
	width, height := 2*margin+labels+bars+80, 64+row*rowHeight
	picture := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">
<style>
svg { background: #fff; font: 13px sans-serif } text { fill: #1f2328 } .title { font-weight: bold } .time { text-anchor: end; font-variant-numeric: tabular-nums }
.d0 { fill: #57606a } .d1 { fill: #0969da } .d2 { fill: #8250df } .d3 { fill: #bf3989 }
@media (prefers-color-scheme: dark) { svg { background: #0d1117 } text { fill: #e6edf3 } .d0 { fill: #8b949e } .d1 { fill: #58a6ff } .d2 { fill: #bc8cff } .d3 { fill: #ff7eb6 } }
</style>
<text class="title" x="%d" y="28">%s</text>
%s</svg>
`, width, height, width, height, html.EscapeString(title), margin, html.EscapeString(title), rows.String())
	must(t, os.MkdirAll(directory, 0o755))
	must(t, os.WriteFile(filepath.Join(directory, name+".svg"), []byte(picture), 0o644))
}

func duration(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%.0f µs", float64(d)/float64(time.Microsecond))
	}
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
