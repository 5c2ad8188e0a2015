package factortest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pquerna/otp/totp"
)

// Code is what an app shows that was told a secret.
func Code(secret string, at time.Time) string {
	code, err := totp.GenerateCode(secret, at)
	if err != nil {
		panic(err)
	}
	return code
}

const (
	step   = 30 * time.Second // how long an app shows a code
	around = 4                // steps: more than a server looks at around its own time
	ahead  = 120              // steps: an hour, in which a test that begins then does what it does
)

// shown are the codes of an app, one for each step from a little before a moment on.
func shown(secret string, at time.Time) []string {
	all := make([]string, 0, around+ahead)
	for n := -around; n < ahead; n++ {
		all = append(all, Code(secret, at.Add(time.Duration(n)*step)))
	}
	return all
}

// Wrong is a code that none of these apps shows, from a little before a moment until an hour after it. A code that is
// always the same would be right once in a million times.
func Wrong(at time.Time, secrets ...string) string {
	right := map[string]bool{}
	for _, secret := range secrets {
		for _, code := range shown(secret, at) {
			right[code] = true
		}
	}
	n := 0
	for right[fmt.Sprintf("%06d", n)] {
		n++
	}
	return fmt.Sprintf("%06d", n)
}

// Choose lets somebody make secrets until there is one whose app, in the hour after a moment, shows no code twice
// within two minutes, nor one that another app shows then. A server takes the codes of some steps: one in a million of
// those that were used, or that are of another app, is right for another of these steps by chance.
func Choose(at time.Time, others []string, makes func() (secret string)) string {
	for {
		secret := makes()
		own := shown(secret, at)
		if !mistaken(own, own, true) && !slices.ContainsFunc(others, func(other string) bool {
			return mistaken(own, shown(other, at), false)
		}) {
			return secret
		}
	}
}

// mistaken tells whether two apps, or one, show a code within a little time of each other.
func mistaken(one, other []string, same bool) bool {
	for i, code := range one {
		for j := max(0, i-around); j <= min(i+around, len(other)-1); j++ {
			if code == other[j] && (i != j || !same) {
				return true
			}
		}
	}
	return false
}
