package mail

import (
	"embed"
	"encoding/json"
	"fmt"
	htmltemplate "html/template"
	"regexp"
	"strings"
	texttemplate "text/template"
	"unicode"

	"golang.org/x/text/language"
)

//go:embed texts
var files embed.FS

// languages that there are texts in. The first is for everybody whose language is not among them.
var languages = []language.Tag{language.English, language.German, language.French, language.Spanish}

var (
	matcher = language.NewMatcher(languages)
	texts   = mustRead()
	html    = htmltemplate.Must(htmltemplate.ParseFS(files, "texts/layout.html"))
	plain   = texttemplate.Must(texttemplate.ParseFS(files, "texts/layout.txt"))
)

// book has all texts in one language. Each is a template over content.
type book struct {
	Greeting  string // to somebody whose name can be said
	Hello     string // to anybody else
	Signature string
	Mails     map[Kind]letter
}

// letter is the text of one mail.
type letter struct {
	Subject string
	Lines   []string
	Button  string   // on the link
	After   []string // below it
}

// content is what a mail says in particular.
type content struct {
	Name, Site string
	Code, Link string
	When       string
	Browser    string
	Address    string
}

// filled is a letter with its content, as the layouts see it. Nothing in it is markup.
type filled struct {
	Language                     string
	Greeting, Signature, Subject string
	Lines, After                 []string
	Button                       string
	Code, Link                   string
}

func mustRead() map[string]*book {
	all := map[string]*book{}
	for _, tag := range languages {
		data, err := files.ReadFile("texts/" + tag.String() + ".json")
		if err != nil {
			panic(err)
		}
		b := &book{}
		if err := json.Unmarshal(data, b); err != nil {
			panic(fmt.Sprintf("%s: %v", tag, err))
		}
		all[tag.String()] = b
	}
	return all
}

// write makes a mail in the language that suits a person best.
func write(kind Kind, preferred string, c content) (Mail, error) {
	wanted, _ := language.Parse(preferred) // what is no language is nobody's
	_, at, _ := matcher.Match(wanted)
	lang := languages[at].String()
	b := texts[lang]
	letter, known := b.Mails[kind]
	if !known {
		return Mail{}, fmt.Errorf("mail: there is no text for %q", kind)
	}
	var problem error
	fill := func(text string) string {
		t, err := texttemplate.New("").Option("missingkey=error").Parse(text)
		var out strings.Builder
		if err == nil {
			err = t.Execute(&out, c)
		}
		if err != nil {
			problem = err
		}
		return out.String()
	}
	greeting := b.Hello
	if c.Name != "" {
		greeting = b.Greeting
	}
	f := filled{Language: lang, Greeting: fill(greeting), Signature: fill(b.Signature), Subject: fill(letter.Subject), Button: fill(letter.Button),
		Code: c.Code, Link: c.Link}
	for _, line := range letter.Lines {
		f.Lines = append(f.Lines, fill(line))
	}
	for _, line := range letter.After {
		f.After = append(f.After, fill(line))
	}
	if problem != nil {
		return Mail{}, problem
	}
	var asText, asHTML strings.Builder
	if err := plain.Execute(&asText, f); err != nil {
		return Mail{}, err
	}
	if err := html.Execute(&asHTML, f); err != nil {
		return Mail{}, err
	}
	return Mail{Kind: kind, Language: lang, Subject: f.Subject, Text: asText.String(), HTML: asHTML.String(), Code: c.Code, Link: c.Link}, nil
}

// address is what mail programs make a link of, whatever it is called.
var address = regexp.MustCompile(`[:/@\\]|\pL\.\pL|www`)

// greetable gives a name to greet somebody by, and nothing where that would let a stranger write into our mails: whoever
// opens an account with somebody else's address chooses the name.
func greetable(name string) string {
	const most = 50
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
	}), " ")
	if len([]rune(name)) > most || address.MatchString(strings.ToLower(name)) {
		return ""
	}
	return name
}
