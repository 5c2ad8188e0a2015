package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/language"
)

// Languages are those the pages speak, English first: it is what remains when nothing else fits.
var Languages = []string{"en", "de", "fr", "es"}

//go:embed texts
var textFiles embed.FS

// texts is the catalogue of one language: keys to sentences with {placeholders}. A sentence that depends on a number
// has two entries, KEY.one and KEY.other.
type texts struct {
	tag     string
	entries map[string]string
}

func loadTexts(tag string) (texts, error) {
	content, err := textFiles.ReadFile("texts/" + tag + ".json")
	if err != nil {
		return texts{}, err
	}
	t := texts{tag: tag}
	if err := json.Unmarshal(content, &t.entries); err != nil {
		return texts{}, fmt.Errorf("texts in %s: %w", tag, err)
	}
	return t, nil
}

var matcher = language.NewMatcher([]language.Tag{language.English, language.German, language.French, language.Spanish})

// maxWishes bounds what is read of a list of languages.
const maxWishes = 500

// chooseLanguage takes what the person has set, then what the application asked for, then what the browser prefers.
func chooseLanguage(preferred, locales, accepted string) string {
	var asked []language.Tag
	for _, l := range strings.Fields(locales[:min(len(locales), maxWishes)]) {
		if tag, err := language.Parse(l); err == nil {
			asked = append(asked, tag)
		}
	}
	var own []language.Tag
	if tag, err := language.Parse(preferred); err == nil {
		own = append(own, tag)
	}
	if len(accepted) > maxWishes {
		accepted = accepted[:strings.LastIndexByte(accepted[:maxWishes], ',')+1]
	}
	browser, _, _ := language.ParseAcceptLanguage(accepted)
	for _, wishes := range [][]language.Tag{own, asked, browser} {
		if _, i, confidence := matcher.Match(wishes...); confidence != language.No {
			return Languages[i]
		}
	}
	return Languages[0]
}

// Message is something that a page says: an entry of the catalogue, or a sentence of the service as it is. Functions
// named after what they say make them; the zero Message says nothing.
type Message struct {
	key   string
	args  []any // names and values in turn
	words string
}

// Said is a message in the words of somebody else, in whatever language they are.
func Said(words string) Message { return Message{words: words} }

// IsNone tells whether there is nothing to say.
func (m Message) IsNone() bool { return m.key == "" && m.words == "" }

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// sentence finds the entry and hands each placeholder's value to show.
func (t texts) sentence(key string, args []any, text, show func(string) string) (string, error) {
	values := map[string]string{}
	form := ""
	for i := 0; i+1 < len(args); i += 2 {
		name := args[i].(string)
		switch v := args[i+1].(type) {
		case string:
			values[name] = show(v)
		case int:
			values[name] = text(strconv.Itoa(v))
			form = t.plural(v)
		case time.Duration:
			said, err := t.duration(v)
			if err != nil {
				return "", err
			}
			values[name] = text(said)
		default:
			return "", fmt.Errorf("text %s: a %T cannot be said", key, v)
		}
	}
	entry, ok := t.entries[key]
	if !ok {
		entry, ok = t.entries[key+form]
	}
	if !ok {
		return "", fmt.Errorf("there is no text %s in %s", key, t.tag)
	}
	missing := ""
	said := placeholder.ReplaceAllStringFunc(text(entry), func(p string) string {
		value, ok := values[p[1:len(p)-1]]
		if !ok {
			missing = p
		}
		return value
	})
	if missing != "" {
		return "", fmt.Errorf("text %s in %s: there is no value for %s", key, t.tag, missing)
	}
	return said, nil
}

// plural tells which form a number takes.
func (t texts) plural(n int) string {
	if n == 1 || n == 0 && t.tag == "fr" {
		return ".one"
	}
	return ".other"
}

// duration says how long something takes, rounded up to a unit that people count in.
func (t texts) duration(d time.Duration) (string, error) {
	unit, name := time.Hour, "time.hours"
	switch {
	case d <= time.Minute:
		unit, name = time.Second, "time.seconds"
	case d <= time.Hour:
		unit, name = time.Minute, "time.minutes"
	}
	return t.plain(name, "n", max(int((d+unit-1)/unit), 1))
}

// html gives a sentence in which names are set apart: they cannot turn the text around them into something else,
// neither by markup nor by the direction they are written in.
func (t texts) html(key string, args ...any) (template.HTML, error) {
	said, err := t.sentence(key, args, html.EscapeString,
		func(s string) string { return "<bdi>" + string(shown(s)) + "</bdi>" })
	return template.HTML(said), err
}

// plain gives a sentence for places that know no markup.
func (t texts) plain(key string, args ...any) (string, error) {
	same := func(s string) string { return s }
	quoted := func(s string) string { return strings.Replace(t.entries["frame.quoted"], "{name}", undirected(s), 1) }
	return t.sentence(key, args, same, quoted)
}

// undirected takes out what changes the direction of text or cannot be seen.
func undirected(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

func (t texts) say(m Message) (template.HTML, error) {
	if m.key == "" {
		return template.HTML("<bdi>" + html.EscapeString(m.words) + "</bdi>"), nil
	}
	return t.html(m.key, m.args...)
}

// moment says when something was or will be. Servers do not know where people are, so it is said in UTC.
func (t texts) moment(at time.Time) (string, error) {
	layout, ok := t.entries["time.layout"]
	if !ok {
		return "", fmt.Errorf("there is no text time.layout in %s", t.tag)
	}
	return at.UTC().Format(layout), nil
}
