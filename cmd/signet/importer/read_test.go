package importer

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

const (
	header     = "userName,profile.firstName,profile.lastName,email.address"
	bcryptHash = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
)

// readAll reads a whole file: the people, and what was rejected as line:reason:fields.
func readAll(t *testing.T, format Format, text string) (people []*person, rejected []string) {
	t.Helper()
	r, err := newReader(strings.NewReader(text), format)
	if err != nil {
		t.Fatal(err)
	}
	for {
		p, rejection, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			if r.offset != int64(len(text)) {
				t.Errorf("%d of %d bytes were read", r.offset, len(text))
			}
			return people, rejected
		case err != nil:
			t.Fatal(err)
		case rejection != nil:
			var fields []string
			for _, f := range rejection.Fields {
				fields = append(fields, f.Field)
			}
			rejected = append(rejected,
				fmt.Sprint(rejection.Line, ":", rejection.Reason, ":", strings.Join(fields, " ")))
			if strings.Contains(fmt.Sprint(*rejection), bcryptHash[7:]) {
				t.Errorf("it quotes the hash: %+v", rejection)
			}
		default:
			people = append(people, p)
		}
	}
}

func ada() *person {
	return &person{
		UserName: "ada",
		Profile:  &signetv1.SetupOrganizationRequest_Human_Profile{FirstName: "Ada", LastName: "Lovelace, Countess"},
		Email:    &signetv1.ImportUsersRequest_User_Email{Address: "ada@example.org"},
	}
}

func TestBothFormatsGiveTheSamePeople(t *testing.T) {
	full := ada()
	full.Reference = "17"
	full.Profile.NickName, full.Profile.DisplayName, full.Profile.PreferredLanguage, full.Profile.Gender = `A "the" L`,
		"Ada L.", "en", signetv1.Gender_GENDER_FEMALE
	full.Email.Verified = true
	full.Phone = &signetv1.ImportUsersRequest_User_Phone{Number: "+44-20-1234", Verified: true}
	full.PasswordHash, full.PasswordChangeRequired = bcryptHash, true
	files := map[Format]string{
		NDJSON: `{"userName":"ada","profile":{"firstName":"Ada","lastName":"Lovelace, Countess"},"email":{"address":"ada@example.org"}}
{"reference":"17","userName":"ada","profile":{"firstName":"Ada","lastName":"Lovelace, Countess","nickName":"A \"the\" L","displayName":"Ada L.","preferredLanguage":"en","gender":"GENDER_FEMALE"},"email":{"address":"ada@example.org","verified":true},"phone":{"number":"+44-20-1234","verified":true},"passwordHash":"` + bcryptHash + `","passwordChangeRequired":true}
`,
		CSV: `email.address,reference,userName,profile.firstName,profile.lastName,profile.nickName,profile.displayName,profile.preferredLanguage,profile.gender,email.verified,phone.number,phone.verified,passwordHash,passwordChangeRequired
ada@example.org,,ada,Ada,"Lovelace, Countess",,,,,,,,,
ada@example.org,17,ada,"Ada","Lovelace, Countess","A ""the"" L",Ada L.,en,GENDER_FEMALE,TRUE,+44-20-1234,True,` + bcryptHash + `,true
`,
	}
	for format, text := range files {
		for name, change := range map[string]func(string) string{
			"as it is":             func(s string) string { return s },
			"with CRLF":            func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
			"with a mark":          func(s string) string { return "\ufeff" + s },
			"without the last end": func(s string) string { return strings.TrimSuffix(s, "\n") },
			"with empty lines":     func(s string) string { return strings.ReplaceAll(s, "\n", "\n\n \t\n") },
		} {
			people, rejected := readAll(t, format, change(text))
			if len(rejected) > 0 || len(people) != 2 || !proto.Equal(people[0], ada()) ||
				!proto.Equal(people[1], full) {
				t.Errorf("%s %s: %v, rejected %q", format, name, people, rejected)
			}
		}
	}
}

func TestALineThatIsWrongIsRejectedAlone(t *testing.T) {
	good := map[Format]string{
		NDJSON: `{"userName":"ada","profile":{"firstName":"Ada","lastName":"Lovelace, Countess"},"email":{"address":"ada@example.org"}}` + "\n",
		CSV:    `ada,Ada,"Lovelace, Countess",ada@example.org,,` + "\n",
	}
	long := strings.Repeat("x", maxLine)
	for _, c := range []struct {
		name   string
		format Format
		line   string
		want   string
	}{
		{"not JSON", NDJSON, `userName: ada`, "INVALID_REQUEST:"},
		{"half an object", NDJSON, `{"userName":"ada"`, "INVALID_REQUEST:"},
		{"two objects", NDJSON, `{"userName":"ada"}{}`, "INVALID_REQUEST:"},
		{"a list", NDJSON, `[]`, "INVALID_REQUEST:"},
		{"an unknown field", NDJSON, `{"userName":"ada","name":"Ada"}`, "INVALID_REQUEST:name"},
		{"values of other types", NDJSON,
			`{"userName":5,"email":{"verified":"yes"},"passwordHash":["` + bcryptHash + `"]}`,
			"INVALID_REQUEST:userName email.verified passwordHash"},
		{"text that is not UTF-8", NDJSON, `{"userName":"` + "\xff" + `"}`, "INVALID_REQUEST:userName"},
		{"a line that is too long", NDJSON, `{"userName":"` + long + `"}`, "LINE_TOO_LONG:"},
		{"a line that is far too long", NDJSON, strings.Repeat(long, 20), "LINE_TOO_LONG:"},
		{"a column too few", CSV, "ada,Ada,Lovelace,a@b.example,", "LINE_INVALID:"},
		{"a column too many", CSV, "ada,Ada,Lovelace,a@b.example,,,", "LINE_INVALID:"},
		{"a quote that does not end", CSV, `ada,"Ada,Lovelace,a@b.example,,` + bcryptHash, "LINE_INVALID:"},
		{"a quote inside", CSV, `ada,A"d"a,Lovelace,a@b.example,,`, "LINE_INVALID:"},
		{"something behind a quote", CSV, `ada,"Ada"x,Lovelace,a@b.example,,`, "LINE_INVALID:"},
		{"what is not a boolean", CSV, "ada,Ada,Lovelace,a@b.example,yes," + bcryptHash,
			"INVALID_REQUEST:email.verified"},
		{"text that is not UTF-8, in CSV", CSV, "ada,\xff,Lovelace,a@b.example,,", "INVALID_REQUEST:profile.firstName"},
		{"a NUL", CSV, "ada,A\x00,Lovelace,a@b.example,,", "INVALID_REQUEST:profile.firstName"},
		{"a line that is too long, in CSV", CSV, long + "x", "LINE_TOO_LONG:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, line := "", 2
			if c.format == CSV {
				first, line = header+",email.verified,passwordHash\n", 3
			}
			people, rejected := readAll(t, c.format, first+good[c.format]+c.line+"\n"+good[c.format])
			if want := fmt.Sprint(line, ":", c.want); len(people) != 2 || !proto.Equal(people[1], ada()) ||
				!slices.Equal(rejected, []string{want}) {
				t.Errorf("%d people, rejected %q, want %q", len(people), rejected, want)
			}
		})
	}
}

// TestALineThatIsNoObjectIsCalledALine: what the server says of a body is said of the line.
func TestALineThatIsNoObjectIsCalledALine(t *testing.T) {
	r, err := newReader(strings.NewReader("[]\n"), NDJSON)
	if err != nil {
		t.Fatal(err)
	}
	_, rejected, err := r.next()
	if err != nil || rejected.Message != "the line is not valid: the line must be a JSON object" ||
		len(rejected.Fields) > 0 {
		t.Errorf("%+v %v", rejected, err)
	}
}

func TestColumnsThatAreRefusedBeforeAnythingIsSent(t *testing.T) {
	for _, c := range []struct{ name, header, says string }{
		{"nothing", "", "the file is empty"},
		{"an unknown one", header + ",name", `column 5 "name" is unknown`},
		{"one twice", header + ",userName", "two columns userName"},
		{"a message", header + ",profile", `"profile" is unknown`},
		{"semicolons", strings.ReplaceAll(header, ",", ";"),
			"column 1 is unknown: the first line must name the columns, separated by commas"},
		{"UTF-16", "\xff\xfeu\x00s\x00e\x00r\x00", "not UTF-8"},
		{"a required one missing", "userName,profile.firstName,profile.lastName",
			"the required column email.address is missing"},
		{"no names, but a user with a hash", bcryptHash + ",Ada,Lovelace,a@b.example", "column 1 is unknown"},
		{"quotes that do not end", `"userName`, "does not end"},
		{"a line without end", strings.Repeat("x", maxLine+1), "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newReader(strings.NewReader(c.header), CSV)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), bcryptHash) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// TestChunksAreTheSameWhereverReadingBegins: what is sent again under a key must be what was sent under it.
func TestChunksAreTheSameWhereverReadingBegins(t *testing.T) {
	var file strings.Builder
	file.WriteString(header + "\n")
	for i := range 3000 {
		name := fmt.Sprint("user", i)
		if i%7 == 0 {
			name = strings.Repeat("long", 2000) // some chunks end by their size
		}
		fmt.Fprintf(&file, "%s,Ada,Lovelace,a%d@b.example\n", name, i)
		if i%100 == 0 {
			file.WriteString("rejected\n\n")
		}
	}
	all := func(from *chunk) (chunks []*chunk) {
		r, err := newReader(strings.NewReader(file.String()), CSV)
		if err != nil {
			t.Fatal(err)
		}
		if from != nil {
			if same, err := r.skip(from.offset, from.line, from.digest); !same || err != nil {
				t.Fatal(same, err)
			}
		}
		for {
			c, err := r.chunk()
			if err != nil {
				t.Fatal(err)
			}
			if c == nil {
				return chunks
			}
			chunks = append(chunks, c)
		}
	}
	key := func(c *chunk) string {
		k, err := c.key("id")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	chunks := all(nil)
	people, seen := 0, map[string]bool{}
	for i, c := range chunks {
		people += len(c.people)
		if size := proto.Size(&signetv1.ImportUsersRequest{Users: c.people}); len(c.people) > chunkLines ||
			size > 1<<20 || seen[key(c)] {
			t.Errorf("chunk %d: %d people, %d bytes", i, len(c.people), size)
		}
		seen[key(c)] = true
		rest := all(c)
		for j := range rest {
			if other := chunks[i+1+j]; key(rest[j]) != key(other) || rest[j].digest != other.digest ||
				!slices.Equal(rest[j].lines, other.lines) {
				t.Fatalf("after %d, chunk %d is another one", i, i+1+j)
			}
		}
		if len(rest) != len(chunks)-i-1 {
			t.Fatalf("after %d there are %d", i, len(rest))
		}
	}
	if people != 3000 || len(chunks) < 6 {
		t.Errorf("%d people in %d chunks", people, len(chunks))
	}
	other, err := chunks[0].key("another import")
	if err != nil || other == key(chunks[0]) {
		t.Error("another import would be answered from memory")
	}
}

func TestAFileThatHasChangedIsNotGoneOnWith(t *testing.T) {
	text := strings.Repeat("{}\n", 1000)
	r, _ := newReader(strings.NewReader(text), NDJSON)
	c, err := r.chunk()
	if err != nil {
		t.Fatal(err)
	}
	for name, now := range map[string]string{"another byte": "[" + text[1:], "less": text[:100], "nothing": ""} {
		r, _ := newReader(strings.NewReader(now), NDJSON)
		if same, err := r.skip(c.offset, c.line, c.digest); same || err != nil {
			t.Errorf("%s: %t, %v", name, same, err)
		}
	}
}

// TestAnImportThatWaitsForItsInputCanBeStopped: somebody who has forgotten the file presses Ctrl-C once.
func TestAnImportThatWaitsForItsInputCanBeStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	defer in.Close()
	go func() { _, _ = feed.Write([]byte("{}\n")) }()
	r, err := newReader(stoppable(ctx, in), NDJSON)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.next(); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, _, err := r.next(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzSplit(f *testing.F) {
	for _, text := range []string{header, `a,"b ""c"", d",e`, `"`, `""`, `a"b`, `"a"b`, `,`, `"a`, "\xff,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\r\n") || text == "" {
			return
		}
		cells, problem := split(text)
		reader := csv.NewReader(strings.NewReader(text))
		want, err := reader.Read()
		if (problem != "") != (err != nil) || problem == "" && !slices.Equal(cells, want) {
			t.Errorf("%q: %q %s, the library says %q %v", text, cells, problem, want, err)
		}
	})
}

// FuzzRead: whatever a file holds, every byte is read once, every line is somebody, rejected or empty, and what is sent
// can be sent.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"userName":"ada","profile":{"firstName":"Ada"}}`+"\n\r\n{"), false)
	f.Add([]byte("\ufeff"+header+"\r\nada,Ada,\"L\",a@b.example\n\"\n"), true)
	f.Add(bytes.Repeat([]byte("x"), maxLine+10), false)
	f.Fuzz(func(t *testing.T, file []byte, asCSV bool) {
		format := NDJSON
		if asCSV {
			format = CSV
		}
		r, err := newReader(bytes.NewReader(file), format)
		if err != nil {
			return
		}
		last := r.offset
		for {
			c, err := r.chunk()
			if err != nil {
				t.Fatal(err)
			}
			if c == nil {
				break
			}
			if c.offset <= last || len(c.people) != len(c.lines) || int64(len(c.people)+len(c.rejected)) > c.read {
				t.Fatalf("%+v", c)
			}
			last = c.offset
			if _, err := c.key("id"); err != nil {
				t.Fatal(err)
			}
			for _, rejected := range c.rejected {
				if !utf8.ValidString(rejected.Message) || rejected.Reason == "" {
					t.Errorf("%+v", rejected)
				}
			}
		}
		if r.offset != int64(len(file)) {
			t.Errorf("%d of %d bytes", r.offset, len(file))
		}
	})
}
