//go:build cost

package program

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// auc is how well times tell two kinds of requests apart: 0.5 not at all, 0 or 1 always.
func auc(a, b []time.Duration) float64 {
	slices.Sort(a)
	slices.Sort(b)
	below, equal, sum := 0, 0, 0.0
	for _, x := range a {
		for below < len(b) && b[below] < x {
			below++
		}
		equal = max(equal, below)
		for equal < len(b) && b[equal] == x {
			equal++
		}
		sum += float64(below) + float64(equal-below)/2
	}
	return sum / float64(len(a)) / float64(len(b))
}

// Whether somebody has a name must not show in how long an answer takes.
func TestAttackTimesDoNotTellWhichNamesThereAre(t *testing.T) {
	// With 4,000 samples of each kind, an AUC is beyond the bound by chance once in 300,000 times; with 8,000, once in 20
	// billion.
	const samples, most = 8000, 0.03
	eachEngine(t, func(t *testing.T, s *site) {
		p := s.start(t, append([]string{"--development"}, behindProxy...)...)
		c := newClient(t, p, s.admin(t).Token)
		names := [2][]string{}
		for i := range 3 {
			name := fmt.Sprintf("somebody%d", i)
			human(t, c, name, "a password of somebody")
			names[0], names[1] = append(names[0], name), append(names[1], fmt.Sprintf("stranger%d", i))
		}
		stranger := c.with("")
		for what, act := range map[string]func(name string, n int) (counts bool){
			"asking for a reset by user name": func(name string, n int) bool {
				stranger.from(network(n)).want(t, 200, "POST", "/v1/users/_request_password_reset",
					object{"loginName": name})
				return true
			},
			"asking for a reset by address": func(name string, n int) bool {
				stranger.from(network(n)).want(t, 200, "POST", "/v1/users/_request_password_reset",
					object{"loginName": name + "@mail.example"})
				return true
			},
			"being turned away": func(name string, _ int) bool {
				seen, _ := tried(t, stranger.from("192.0.2.7"), "/v1/sessions",
					object{"loginName": name, "password": "wrong"})
				return strings.HasPrefix(seen, "429")
			},
		} {
			var took [2][]time.Duration
			for n := 0; min(len(took[0]), len(took[1])) < samples; n++ {
				kind := rand.IntN(2)
				name := names[kind][rand.IntN(len(names[kind]))]
				begun := time.Now()
				counts := act(name, n)
				if d := time.Since(begun); counts {
					took[kind] = append(took[kind], d)
				}
			}
			got := auc(took[0], took[1])
			t.Logf("%s: AUC %.3f, medians %v and %v", what, got, took[0][len(took[0])/2], took[1][len(took[1])/2])
			if got < 0.5-most || got > 0.5+most {
				t.Errorf("%s: known and unknown names are told apart with an AUC of %.3f", what, got)
			}
		}
	})
}
