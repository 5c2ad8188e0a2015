package provider

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signet-idm/signet/internal/api/enums"
)

// checkWords compares a table with the values of the API: each but the unspecified one has a word of its own.
func checkWords[N interface {
	comparable
	protoreflect.Enum
}, W ~string](t *testing.T, name string, words map[N]W) {
	t.Run(name, func(t *testing.T) {
		var zero N
		values := zero.Descriptor().Values()
		if len(words) != values.Len()-1 {
			t.Errorf("the table has %d entries, the API %d values", len(words), values.Len())
		}
		for n, w := range words {
			if w == "" || values.ByNumber(n.Number()) == nil || enums.Number(words, w) != n {
				t.Errorf("%v is %q", n, w)
			}
		}
		if got := enums.Number(words, ""); got != zero {
			t.Errorf("nothing is %v", got)
		}
	})
}

func TestEveryValueOfTheAPIHasItsWord(t *testing.T) {
	checkWords(t, "styling", stylings)
	checkWords(t, "state", states)
	checkWords(t, "type", types)
	checkWords(t, "preset", presets)
	checkWords(t, "client authentication", clientAuths)
}
