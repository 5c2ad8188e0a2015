package pages

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"unicode"
)

// shown gives a name in which nothing hides: blanks at its ends or in a row, characters that cannot be seen and those
// that change the direction of text are marked, so that " bob " and "bob" do not look alike. The template sets it apart
// with bdi.
func shown(name string) template.HTML {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case unicode.IsSpace(r) && oddBlank(runes, i):
			b.WriteString(`<span class="odd" title="` + codePoint(r) + `">␣</span>`)
		case invisible(r) && !joins(runes, i):
			b.WriteString(`<span class="odd">` + codePoint(r) + `</span>`)
		default:
			b.WriteString(html.EscapeString(string(r)))
		}
	}
	return template.HTML(b.String())
}

func codePoint(r rune) string { return fmt.Sprintf("U+%04X", r) }

// oddBlank tells whether nobody would see a blank: browsers leave out those at the ends and all but one in a row.
func oddBlank(name []rune, i int) bool {
	return i == 0 || i == len(name)-1 || name[i] != ' ' || unicode.IsSpace(name[i-1]) || unicode.IsSpace(name[i+1])
}

// blanks are letters and symbols that look like nothing.
const blanks = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"

func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co, unicode.Zl, unicode.Zp) || strings.ContainsRune(blanks, r)
}

// joins tells whether a character only joins or parts its neighbours, as Persian and Indic names and emoji need it.
func joins(name []rune, i int) bool {
	if name[i] != '\u200c' && name[i] != '\u200d' || i == 0 || i == len(name)-1 {
		return false
	}
	written := func(r rune) bool { return r > unicode.MaxLatin1 && !invisible(r) && !unicode.IsSpace(r) }
	return written(name[i-1]) && written(name[i+1])
}
