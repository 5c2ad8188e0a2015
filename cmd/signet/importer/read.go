package importer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/strict"
)

// Format of a file.
type Format string

// The formats.
const (
	NDJSON Format = "ndjson" // an object a line
	CSV    Format = "csv"    // names of columns in the first line, then a user a line
)

// maxLine is how many bytes a line may have; no valid user takes as many.
const maxLine = 64 << 10

// Reasons of lines that never reach the server, beside those of the API.
const (
	lineTooLong = "LINE_TOO_LONG"
	lineInvalid = "LINE_INVALID"
)

// person is one person to be imported.
type person = signetv1.ImportUsersRequest_User

// rejection says why a line was not imported. It never holds what was in the line, but for the reference.
type rejection struct {
	Line      int64       `json:"line"`
	Reference string      `json:"reference,omitempty"`
	Reason    string      `json:"reason"`
	Message   string      `json:"message"`
	Fields    []violation `json:"fields,omitempty"`
}

type violation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

// reader reads people line by line. It knows how far it has come, and what it has read.
type reader struct {
	in     *bufio.Reader
	format Format
	offset int64 // bytes read
	line   int64 // lines read
	sum    hash.Hash
	names  []string                         // of the columns
	paths  [][]protoreflect.FieldDescriptor // of the columns
}

// newReader reads what comes before the first person: of CSV, the names of the columns.
func newReader(in io.Reader, format Format) (*reader, error) {
	r := &reader{in: bufio.NewReaderSize(in, maxLine+2), format: format, sum: sha256.New()}
	if format != CSV {
		return r, nil
	}
	text, tooLong, err := r.text()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty: the first line of a CSV file must name the columns")
	case err != nil:
		return nil, err
	case tooLong:
		return nil, fmt.Errorf("the first line has more than %d bytes: the first line of a CSV file must name the columns", maxLine)
	}
	return r, r.header(string(text))
}

// digest is what has been read so far.
func (r *reader) digest() string { return hex.EncodeToString(r.sum.Sum(nil)) }

// skip reads on to a place that another run has come to, and tells whether what is before it is the same.
func (r *reader) skip(offset, line int64, digest string) (same bool, err error) {
	n, err := io.CopyN(r.sum, r.in, max(0, offset-r.offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	r.offset, r.line = r.offset+n, line
	return r.offset == offset && r.digest() == digest, nil
}

// text reads the next line without its end. It is good until the next call. Errors: io.EOF.
func (r *reader) text() (text []byte, tooLong bool, err error) {
	first := r.offset == 0
	for {
		part, err := r.in.ReadSlice('\n')
		r.sum.Write(part)
		r.offset += int64(len(part))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			tooLong = true // its end is still to come, and of no interest
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, false, fmt.Errorf("reading the file: %w", err)
		case err != nil && len(part) == 0 && !tooLong:
			return nil, false, io.EOF
		}
		r.line++
		text = bytes.TrimSuffix(bytes.TrimSuffix(part, []byte("\n")), []byte("\r"))
		if first {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		return text, tooLong || len(text) > maxLine, nil
	}
}

// next reads the next person, or why there is none in the line. Empty lines are passed over. Errors: io.EOF.
func (r *reader) next() (*person, *rejection, error) {
	for {
		text, tooLong, err := r.text()
		switch {
		case err != nil:
			return nil, nil, err
		case tooLong:
			return nil, r.reject(lineTooLong, fmt.Sprintf("the line has more than %d bytes", maxLine)), nil
		case len(bytes.TrimSpace(text)) == 0:
			continue
		}
		p := &person{}
		var wrong []errs.Violation
		if r.format == CSV {
			var problem string
			if wrong, problem = r.columns(p, string(text)); problem != "" {
				return nil, r.reject(lineInvalid, problem), nil
			}
		} else {
			wrong, _ = strict.UnmarshalJSON(text, p)
		}
		if len(wrong) > 0 {
			return nil, r.invalid(p, wrong), nil
		}
		return p, nil, nil
	}
}

func (r *reader) reject(reason, message string) *rejection {
	return &rejection{Line: r.line, Reason: reason, Message: message}
}

// invalid is what the server would have said about a request.
func (r *reader) invalid(p *person, wrong []errs.Violation) *rejection {
	e := errs.Invalid(wrong...)
	ofLine := strings.NewReplacer("the request is", "the line is", "the body", "the line")
	out := r.reject(string(e.Reason), ofLine.Replace(e.Message))
	out.Reference = p.GetReference()
	for _, f := range e.Fields {
		if f.Field != "" { // else it is about the whole line, and the message says it
			out.Fields = append(out.Fields, violation{Field: f.Field, Description: f.Message})
		}
	}
	return out
}

// header understands the names of the columns: those of the fields in JSON, with dots between them.
func (r *reader) header(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("the first line is not UTF-8: save the file as UTF-8")
	}
	names, problem := split(text)
	if problem != "" {
		return errors.New("the first line, which names the columns, " + problem)
	}
	known := columnsOf((&person{}).ProtoReflect().Descriptor(), "", nil)
	seen := map[string]bool{}
	for i, name := range names {
		name = strings.TrimSpace(name)
		path := known[name]
		switch {
		case path == nil:
			return fmt.Errorf("column %d%s is unknown: the first line must name the columns, separated by commas, such as userName,profile.firstName,email.address", i+1, shown(name))
		case seen[name]:
			return fmt.Errorf("there are two columns %s", name)
		}
		seen[name] = true
		r.names, r.paths = append(r.names, name), append(r.paths, path)
	}
	for _, name := range []string{"userName", "profile.firstName", "profile.lastName", "email.address"} {
		if !seen[name] {
			return fmt.Errorf("the required column %s is missing", name)
		}
	}
	return nil
}

// shown repeats the name of a column that can only be a name: a file without names has a user there, perhaps with a
// hash.
func shown(name string) string {
	if len(name) > 40 || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz._- ") != "" {
		return ""
	}
	return fmt.Sprintf(" %q", name)
}

// columnsOf gives the fields of a message that hold no message, by their path.
func columnsOf(md protoreflect.MessageDescriptor, prefix string,
	above []protoreflect.FieldDescriptor) map[string][]protoreflect.FieldDescriptor {
	all := map[string][]protoreflect.FieldDescriptor{}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		path := append(above[:len(above):len(above)], fd)
		if fd.Message() == nil {
			all[prefix+fd.JSONName()] = path
			continue
		}
		for name, below := range columnsOf(fd.Message(), prefix+fd.JSONName()+".", path) {
			all[name] = below
		}
	}
	return all
}

// columns fills a person from a line of CSV. A cell that is empty is a field that is left out.
func (r *reader) columns(p *person, text string) (wrong []errs.Violation, problem string) {
	cells, problem := split(text)
	switch {
	case problem != "":
		return nil, "the line " + problem
	case len(cells) != len(r.paths):
		return nil, fmt.Sprintf("the line has %d columns, but the first line has %d", len(cells), len(r.paths))
	}
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		m, path := p.ProtoReflect(), r.paths[i]
		for _, fd := range path[:len(path)-1] {
			m = m.Mutable(fd).Message()
		}
		field := path[len(path)-1]
		if field.Kind() == protoreflect.BoolKind {
			cell = strings.ToLower(cell) // spreadsheets write TRUE
		}
		if problem := strict.SetField(m, field, cell); problem != "" {
			wrong = append(wrong, errs.Violation{Field: r.names[i], Message: problem})
		}
	}
	return wrong, ""
}

// split takes a line of CSV (RFC 4180) apart. A field in quotes ends on its line, so that a quote too many spoils one
// line.
func split(text string) (cells []string, problem string) {
	for {
		if !strings.HasPrefix(text, `"`) {
			cell, rest, more := strings.Cut(text, ",")
			if strings.Contains(cell, `"`) {
				return nil, `has a " inside a column: put quotes around it, and double those inside`
			}
			cells = append(cells, cell)
			if !more {
				return cells, ""
			}
			text = rest
			continue
		}
		var cell strings.Builder
		for text = text[1:]; ; text = text[1:] {
			part, rest, closed := strings.Cut(text, `"`)
			if !closed {
				return nil, `has a column that begins with " and does not end with one: no column goes over the end of a line`
			}
			cell.WriteString(part)
			if text = rest; !strings.HasPrefix(text, `"`) {
				break
			}
			cell.WriteByte('"')
		}
		cells = append(cells, cell.String())
		switch {
		case text == "":
			return cells, ""
		case text[0] != ',':
			return nil, `has something behind a closing ": there may be only a comma`
		}
		text = text[1:]
	}
}

// chunk is some people that are sent in one request, with the lines they come from.
type chunk struct {
	people   []*person
	lines    []int64
	rejected []*rejection // of lines that are not sent

	read   int64  // lines of the file, empty ones too
	offset int64  // where it ends
	line   int64  // likewise
	digest string // of the file up to there

	answer chan answer
}

// How much is sent in one request. Where it ends depends on nothing but the file, so that the chunks are the same when
// an import goes on.
const (
	chunkLines = 500
	chunkBytes = 512 << 10
)

// chunk reads the next people; nil at the end of the file.
func (r *reader) chunk() (*chunk, error) {
	c := &chunk{answer: make(chan answer, 1)}
	offset, line := r.offset, r.line
	for len(c.people)+len(c.rejected) < chunkLines && r.offset-offset < chunkBytes {
		p, rejected, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if rejected != nil {
			c.rejected = append(c.rejected, rejected)
			continue
		}
		c.people, c.lines = append(c.people, p), append(c.lines, r.line)
	}
	c.read, c.offset, c.line, c.digest = r.line-line, r.offset, r.line, r.digest()
	if c.read == 0 {
		return nil, nil
	}
	return c, nil
}

// key makes the idempotency key of a chunk: the same one whenever this import comes to it, and another one for
// everything else.
func (c *chunk) key(id string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n", id, c.offset)
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(&signetv1.ImportUsersRequest{Users: c.people})
	h.Write(body)
	return "import-" + hex.EncodeToString(h.Sum(nil)), err
}
