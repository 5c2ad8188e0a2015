package mail

import (
	"embed"
	"encoding/json"
	"fmt"
	htmltemplate "html/template"
	"regexp"
	"strings"
	"sync"
	texttemplate "text/template"
	"time"
	"unicode"

	"golang.org/x/text/language"
)

//go:embed texts
var files embed.FS

// languages that there are texts in. The first is for everybody whose language is not among them.
var languages = []language.Tag{language.English, language.German, language.French, language.Spanish}

// What mails are made of is read with the first mail: a server that sends none does without the memory.
var (
	matcher = sync.OnceValue(func() language.Matcher { return language.NewMatcher(languages) })
	texts   = sync.OnceValue(mustRead)
	html    = sync.OnceValue(func() *htmltemplate.Template {
		return htmltemplate.Must(htmltemplate.ParseFS(files, "texts/layout.html"))
	})
	plain = sync.OnceValue(func() *texttemplate.Template {
		return texttemplate.Must(texttemplate.ParseFS(files, "texts/layout.txt"))
	})
)

// book has all texts in one language. Each is a template over content.
type book struct {
	Greeting  string // to somebody whose name can be said
	Hello     string // to anybody else
	Unknown   string // a browser that cannot be named
	Time      string // how a time is written, as Go writes layouts
	Colon     string // with the space that the language puts before it
	Signature string
	Account   string // which one it is about
	AccountIn string // likewise, with its organization
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
	Name, Site   string
	LoginName    string // empty: it cannot be said
	Organization string // likewise
	Code, Link   string
	At           time.Time // what When says
	When         string    // write sets it
	Browser      string
	Address      string
	Provider     string // its name; in NoPassword also several
	Passkey      bool   // the person has one, and may sign in with it
	Inviter      string // who invites
	OrgOrSite    string // the organization that somebody is invited to, or else the site
	Forgot       string // the page for who has forgotten the password
}

// filled is a letter with its content, as the layouts see it. Nothing in it is markup.
type filled struct {
	Language                     string
	Greeting, Signature, Subject string
	Account                      string
	Lines, After                 []string
	Button, Colon                string
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
	_, at, _ := matcher().Match(wanted)
	lang := languages[at].String()
	f, err := texts()[lang].fill(kind, c)
	if err != nil {
		return Mail{}, err
	}
	f.Language = lang
	var asText, asHTML strings.Builder
	if err := plain().Execute(&asText, f); err != nil {
		return Mail{}, err
	}
	if err := html().Execute(&asHTML, f); err != nil {
		return Mail{}, err
	}
	return Mail{Kind: kind, Language: lang, Subject: f.Subject, Text: asText.String(), HTML: asHTML.String(),
		Code: c.Code, Link: c.Link}, nil
}

// fill puts the content into the texts of one mail.
func (b *book) fill(kind Kind, c content) (filled, error) {
	letter, known := b.Mails[kind]
	if !known {
		return filled{}, fmt.Errorf("mail: there is no text for %q", kind)
	}
	c.When = c.At.UTC().Format(b.Time)
	if c.Browser == unknownBrowser {
		c.Browser = b.Unknown
	}
	var problem error
	fill := func(text string) string {
		said, err := c.in(text)
		if err != nil {
			problem = err
		}
		return said
	}
	f := filled{Greeting: fill(b.Hello), Signature: fill(b.Signature), Subject: fill(letter.Subject),
		Button: fill(letter.Button), Colon: b.Colon, Code: c.Code, Link: c.Link}
	if c.Name != "" {
		f.Greeting = fill(b.Greeting)
	}
	switch {
	case c.LoginName != "" && c.Organization != "":
		f.Account = fill(b.AccountIn)
	case c.LoginName != "":
		f.Account = fill(b.Account)
	}
	for _, line := range letter.Lines {
		f.Lines = append(f.Lines, fill(line))
	}
	for _, line := range letter.After {
		f.After = append(f.After, fill(line))
	}
	return f, problem
}

// in gives a text with the content in its places.
func (c content) in(text string) (string, error) {
	t, err := texttemplate.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, c)
	return out.String(), err
}

// plainName is a user name that nobody takes for anything else.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL\pN][\pL\pN._+-]{0,63}$`) })

// address is what mail programs make a link of, whatever it is called.
var address = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[:/@\\]|\pL\.\pL|www`) })

// greetable returns a name to greet somebody by, or nothing if the name would let a stranger put text into our mails: a
// person who opens an account with somebody else's address chooses the name.
func greetable(name string) string {
	const most = 50
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) ||
			unicode.Is(unicode.Zp, r)
	}), " ")
	if len([]rune(name)) > most || address().MatchString(strings.ToLower(name)) {
		return ""
	}
	return name
}
