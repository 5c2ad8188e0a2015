package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
)

// raw sends any HTTP request and looks at what every refusal promises.
func (w *World) raw(t *testing.T, method, path string, as *Actor, h Header, body string) *Answer {
	t.Helper()
	all := merge([]Header{h})
	if as != nil {
		all["authorization"] = []string{"Bearer " + as.Token}
	}
	var content []byte
	if body != "" {
		content = []byte(body)
		if _, given := h["content-type"]; !given {
			all["content-type"] = []string{"application/json"}
		}
	}
	w.requests.Add(1)
	a, err := w.rest.do(t.Context(), method, path, all, content)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if a.status != nil {
		w.verifyRefusal(t.Errorf, a)
	}
	w.mu.Lock()
	w.answers.Write(a.body)
	w.mu.Unlock()
	return a
}

// jsonTypes gives every field of every operation a value of each wrong type.
func jsonTypes(t *testing.T, w *World) {
	s := w.scene(t)
	as := s.holder(t, iamOwner)
	for _, op := range operations {
		if op.verb == "GET" || op.verb == "DELETE" {
			continue
		}
		path, body, err := op.asREST(s.complete(op)) // so that every field is there to be replaced
		if err != nil {
			t.Fatal(err)
		}
		g := &generator{scene: s, op: op, all: true}
		for _, f := range fieldsOf(op.md.Input(), "") {
			for _, value := range wrongTypes(f.fd, g) {
				changed := replaceJSON(t, body, f.path, value.json)
				a := w.raw(t, op.verb, path, as, nil, changed)
				if got := a.fields(); len(got) != 1 || got[0] != f.path+value.suffix || a.http != 400 {
					t.Errorf("%s: %s as %s: %d %q", op.name(), f.path, value.json, a.http, got)
				}
			}
		}
		for _, value := range []string{`[]`, `"x"`, `1`, `null`, `true`} {
			w.raw(t, op.verb, path, as, nil, value).mustBe(t, invalid(""))
		}
	}
}

type wrong struct{ json, suffix string }

// wrongTypes are JSON values that a field cannot take. suffix is what the path of the violation has besides the
// field's.
func wrongTypes(fd protoreflect.FieldDescriptor, g *generator) []wrong {
	var values []string
	switch {
	case fd.IsList() && fd.Message() != nil:
		return []wrong{{`"x"`, ""}, {`{}`, ""}, {`1`, ""}, {`true`, ""}, {`[null]`, "[0]"}, {`["x"]`, "[0]"},
			{`[1]`, "[0]"}, {`[[]]`, "[0]"}}
	case fd.IsList():
		good, bad := g.elements(fd)[0], "1"
		if fd.Enum() != nil {
			good, bad = string(fd.Enum().Values().Get(1).Name()), "true"
		}
		return []wrong{{`"x"`, ""}, {`{}`, ""}, {`1`, ""}, {`true`, ""}, {`["` + good + `", ` + bad + `]`, "[1]"},
			{`[null]`, "[0]"}, {`[["x"]]`, "[0]"}, {`[{}]`, "[0]"}}
	case fd.Message() != nil && fd.Message().FullName() == "google.protobuf.FieldMask": // a text
		values = []string{`1`, `true`, `[]`, `{}`, `["name"]`}
	case fd.Message() != nil:
		values = []string{`"x"`, `1`, `true`, `[]`, `[{}]`}
	case fd.Kind() == protoreflect.StringKind:
		values = []string{`1`, `1.5`, `true`, `[]`, `["x"]`, `{}`, `"\u0000"`, `"\ud800"`}
	case fd.Kind() == protoreflect.BoolKind:
		values = []string{`"true"`, `1`, `0`, `[]`, `{}`, `""`}
	case fd.Kind() == protoreflect.EnumKind:
		values = []string{`"NO_SUCH_NAME"`, `""`, `true`, `1.5`, `99`, `-1`, `[]`, `{}`, `4294967296`, `1e99`}
	default:
		values = []string{`"x"`, `{}`, `[]`, `1.5`}
	}
	all := make([]wrong, len(values))
	for i, v := range values {
		all[i] = wrong{json: v}
	}
	return all
}

// replaceJSON sets the value at a path of an object, which may hold anything that can be written.
func replaceJSON(t *testing.T, body []byte, path, value string) string {
	t.Helper()
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &object); err != nil {
		t.Fatal(err)
	}
	name, rest, nested := strings.Cut(path, ".")
	if nested {
		value = replaceJSON(t, object[name], rest, value)
	}
	object[name] = json.RawMessage(value)
	var parts []string // encoding/json would refuse half of a surrogate pair, or mend it
	for k, v := range object {
		parts = append(parts, `"`+k+`":`+string(v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// jsonBodies are about how a body may be written.
func jsonBodies(t *testing.T, w *World) {
	s, other := w.scene(t), w.elsewhere(t)
	const profilePath = "/v1/users/me/profile"
	plain := `"firstName":"a","lastName":"b","displayName":"c"`
	read := func() *signetv1.User_Profile { return (&Client{w, w.rest}).me(t, s.user).GetHuman().GetProfile() }
	for _, x := range []struct {
		name, body string
		want       Want
		stored     *signetv1.User_Profile // where it succeeds
	}{
		{"as it should be", `{` + plain + `}`, ok, &signetv1.User_Profile{}},
		{"white space", " \r\n\t{ " + plain + " }\n", ok, &signetv1.User_Profile{}},
		{"snake case", `{"first_name":"a","last_name":"b","display_name":"c","nick_name":"n"}`, ok,
			&signetv1.User_Profile{NickName: "n"}},
		{"null is absent", `{` + plain + `,"nickName":null,"gender":null,"preferredLanguage":null}`, ok,
			&signetv1.User_Profile{}},
		{"null for what is required", `{"firstName":null,"lastName":"b","displayName":"c"}`, invalid("firstName"), nil},
		{"empty nickname", `{` + plain + `,"nickName":""}`, invalid("nickName"), nil},
		{"empty language", `{` + plain + `,"preferredLanguage":""}`, ok, &signetv1.User_Profile{}},
		{"gender by name", `{` + plain + `,"gender":"GENDER_DIVERSE"}`, ok,
			&signetv1.User_Profile{Gender: signetv1.Gender_GENDER_DIVERSE}},
		{"gender by number", `{` + plain + `,"gender":1}`, ok,
			&signetv1.User_Profile{Gender: signetv1.Gender_GENDER_FEMALE}},
		{"gender in other case", `{` + plain + `,"gender":"gender_male"}`, invalid("gender"), nil},
		{"escapes", `{"firstName":"\u0061","lastName":"\ud835\udd4a\/\"","displayName":"c"}`, ok,
			&signetv1.User_Profile{LastName: `𝕊/"`}},
		{"unknown field", `{` + plain + `,"fristName":"x"}`, invalid("fristName"), nil},
		{"unknown field that is null", `{` + plain + `,"x":null}`, invalid("x"), nil},
		{"field in other case", `{` + plain + `,"NickName":"x"}`, invalid("NickName"), nil},
		{"several unknown", `{` + plain + `,"x":{"a":[1]},"y":[]}`, invalid("x", "y"), nil},
		{"a key twice", `{` + plain + `,"firstName":"a"}`, invalid("firstName"), nil},
		{"a key twice, once null", `{` + plain + `,"nickName":null,"nickName":"n"}`, invalid("nickName"), nil},
		{"both spellings", `{` + plain + `,"first_name":"a"}`, invalid("firstName"), nil},
		{"trailing garbage", `{` + plain + `} x`, invalid(""), nil},
		{"two objects", `{` + plain + `}{}`, invalid(""), nil},
		{"trailing comma", `{` + plain + `,}`, invalid(""), nil},
		{"single quotes", `{'firstName':'a'}`, invalid(""), nil},
		{"comment", `{` + plain + ` /* c */}`, invalid(""), nil},
		{"cut off", `{` + plain, invalid(""), nil},
		{"not JSON", `firstName=a&lastName=b`, invalid(""), nil},
		{"only white space", "  ", invalid(""), nil},
		{"byte order mark", "\ufeff{" + plain + "}", invalid(""), nil},
		{"bad UTF-8", "{\"firstName\":\"\xff\",\"lastName\":\"b\",\"displayName\":\"c\"}", invalid("firstName"), nil},
		{"raw control character", "{\"firstName\":\"a\nb\",\"lastName\":\"b\",\"displayName\":\"c\"}",
			invalid("firstName"), nil},
		{"very deep", `{` + plain + `,"x":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}`,
			invalid("x"), nil},
		{"empty object", `{}`, invalid("firstName", "lastName", "displayName"), nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := w.raw(t, "PUT", profilePath, s.user, nil, x.body)
			if x.want.Fields != nil && x.want.Fields[0] == "" && a.http == 400 {
				return // where exactly broken JSON is broken is not promised
			}
			a.mustBe(t, x.want)
			if x.stored != nil {
				want := &signetv1.User_Profile{FirstName: "a", LastName: "b", DisplayName: "c"}
				proto.Merge(want, x.stored)
				sameMessage(t, "stored", read(), want)
			}
		})
	}
	w.raw(t, "PUT", profilePath, s.user, header("content-type", "application/json"), "").mustBe(t, invalid(""))

	// The path and the body may say the same thing, but not two things.
	for _, x := range []struct {
		op   proto.Message
		name string
	}{{general(s.idp), "idpId"}, {jwtConfig(s.idp), "idpId"},
		{setPassword(s.user.UserID, w.secret("path")), "userId"}} {
		op := operationFor(x.op)
		path, body, err := op.asREST(x.op)
		if err != nil {
			t.Fatal(err)
		}
		id := x.op.ProtoReflect().Get(field(x.op.ProtoReflect(), x.name)).String()
		w.raw(t, op.verb, path, s.owner, nil, replaceJSON(t, body, x.name, `"`+other.idp+`"`)).mustBe(t,
			invalid(x.name))
		w.raw(t, op.verb, path, s.owner, nil, replaceJSON(t, body, x.name, `"`+strings.ToUpper(id)+`"`)).mustBe(t,
			invalid(x.name))
		w.raw(t, op.verb, path, s.owner, nil, replaceJSON(t, body, x.name, `"`+id+`"`)).mustBe(t, ok)
		w.raw(t, op.verb, path+"?"+x.name+"="+id, s.owner, nil, string(body)).mustBe(t, invalid(x.name))
		if x.name == "userId" {
			break
		}
		// an empty text is an absent one
		w.raw(t, op.verb, path, s.owner, nil, replaceJSON(t, body, x.name, `""`)).mustBe(t, ok)
	}
	// An empty header name, said or not, is the same.
	w.raw(t, "PUT", "/v1/idps/"+s.idp+"/jwt_config", s.owner, nil,
		`{"jwtEndpoint":"a","issuer":"b","keysEndpoint":"c","headerName":""}`).mustBe(t, ok)
	same(t, "header name", (&Client{w, w.rest}).idp(t, s.owner, s.idp).GetJwt().GetHeaderName(), "")
	// Sequences are decimal strings, so that no client loses digits, and empty fields are there.
	a := w.raw(t, "GET", "/v1/idps/"+s.idp, s.owner, nil, "")
	if got := string(a.body); !strings.Contains(got, `"sequence":"`) || !strings.Contains(got, `"headerName":""`) ||
		!strings.Contains(got, `"autoRegister":`) {
		t.Errorf("got %s", got)
	}
	if err := protojson.Unmarshal(a.body, &signetv1.GetIdentityProviderResponse{}); err != nil {
		t.Error(err)
	}
	// Where the path says everything there may be no body at all.
	for i, body := range []string{"", "{}", "{} "} {
		verb := []string{"_deactivate", "_reactivate"}[i%2]
		w.raw(t, "POST", "/v1/idps/"+s.idp+"/"+verb, s.owner, nil, body).mustBe(t, ok)
	}
	w.raw(t, "POST", "/v1/idps/"+s.idp+"/_reactivate", s.owner, nil, `{"x":1}`).mustBe(t, invalid("x"))
	w.raw(t, "POST", "/v1/idps/"+s.idp+"/_reactivate", s.owner, nil, `[]`).mustBe(t, invalid(""))
	w.raw(t, "PUT", profilePath, s.owner, nil, "").mustBe(t, invalid(""))
}
