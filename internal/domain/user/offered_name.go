package user

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// namesOffered are how many names are tried for somebody.
const namesOffered = 4

// OfferedName is a user name to suggest to somebody who becomes a user of an organization, like an address or a name of
// theirs elsewhere: what comes before the @, since the login name gets one with the domain, with a number if somebody
// has it. It tells no more than the form that it stands in: the same person may try any name there. Empty: none.
func OfferedName(ctx context.Context, r event.Reader, org, like string) (string, error) {
	stem := []rune(strings.TrimSpace(strings.Map(plain, syntax.BeforeAt(strings.ToValidUTF8(unquoted(like), "")))))
	stem = stem[:min(len(stem), syntax.MaxName-1)]
	if len(stem) == 0 {
		return "", nil
	}
	for n := 1; n <= namesOffered; n++ {
		name := string(stem)
		if n > 1 {
			name += strconv.Itoa(n)
		}
		holder, err := r.Holder(ctx, NameClaim(org, syntax.NameKey(name)))
		if err != nil || holder == "" {
			return name, err
		}
	}
	return "", nil
}

// unquoted is an address whose local part is a quoted string, without the quotes.
func unquoted(address string) string {
	if strings.HasPrefix(address, `"`) {
		return strings.NewReplacer(`"`, "", `\`, "").Replace(address)
	}
	return address
}

// plain leaves out what nobody types into a name.
func plain(c rune) rune {
	if unicode.IsControl(c) {
		return -1
	}
	return c
}
