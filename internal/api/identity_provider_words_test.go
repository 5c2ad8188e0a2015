package api

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// checkWords compares a table with the values of the API: each but the unspecified one has a word of its own.
func checkWords[N interface {
	comparable
	protoreflect.Enum
}, W ~string](t *testing.T, name string, words enum[N, W]) {
	t.Run(name, func(t *testing.T) {
		var zero N
		values := zero.Descriptor().Values()
		if len(words) != values.Len()-1 {
			t.Errorf("the table has %d entries, the API %d values", len(words), values.Len())
		}
		for n, w := range words {
			if w == "" || values.ByNumber(n.Number()) == nil || words.number(w) != n {
				t.Errorf("%v is %q", n, w)
			}
		}
		if got := words.number(""); got != zero {
			t.Errorf("nothing is %v", got)
		}
	})
}

func TestEveryValueOfTheAPIHasItsWord(t *testing.T) {
	checkWords(t, "styling", stylings)
	checkWords(t, "state", providerStates)
	checkWords(t, "type", providerTypes)
	checkWords(t, "preset", providerPresets)
	checkWords(t, "client authentication", clientAuths)
}
