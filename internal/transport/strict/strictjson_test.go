package strict_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/strict"
	"github.com/signet-idm/signet/test/costtest"
)

// lines writes violations one per line, as the tables below have them.
func lines(violations []errs.Violation) string {
	out := make([]string, len(violations))
	for i, v := range violations {
		out[i] = v.Field + ": " + v.Message
	}
	return strings.Join(out, "\n")
}

// each is a violation of every one of the n elements of a list.
func each(list string, n int, message string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s[%d]: %s", list, i, message)
	}
	return strings.Join(out, "\n")
}

func TestABodyIsUnderstood(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want proto.Message
	}{
		"with names in lowerCamelCase": {
			`{"firstName":"Ada","nickName":"Countess","gender":"GENDER_FEMALE"}`,
			&signetv1.UpdateMyProfileRequest{FirstName: "Ada", NickName: proto.String("Countess"),
				Gender: signetv1.Gender_GENDER_FEMALE},
		},
		"with names as in the proto files": {
			`{"first_name":"Ada","nick_name":"Countess"}`,
			&signetv1.UpdateMyProfileRequest{FirstName: "Ada", NickName: proto.String("Countess")},
		},
		"and an optional string that is empty is set": {`{"nickName":""}`,
			&signetv1.UpdateMyProfileRequest{NickName: proto.String("")}},
		"and an optional string that is null is unset": {`{"nickName":null}`, &signetv1.UpdateMyProfileRequest{}},
		"and null is absent for messages and lists": {`{"org":null,"roles":null,"human":{"profile":null}}`,
			&signetv1.SetupOrganizationRequest{Human: &signetv1.SetupOrganizationRequest_Human{}}},
		"with white space all around": {" \t\r\n{ \"roles\" : [ \"a\" , \"b\" ] } \n",
			&signetv1.SetupOrganizationRequest{Roles: []string{"a", "b"}}},
		"with an enum by number": {`{"gender":3}`,
			&signetv1.UpdateMyProfileRequest{Gender: signetv1.Gender_GENDER_DIVERSE}},
		"with an enum number nobody defined": {`{"gender":77}`, &signetv1.UpdateMyProfileRequest{Gender: 77}},
		"with every escape": {
			`{"firstName":"\"\\\/\b\f\n\r\t\u00e4\u00E4\ud83d\ude00ä"}`,
			&signetv1.UpdateMyProfileRequest{FirstName: "\"\\/\b\f\n\r\tää😀ä"},
		},
		"with an object inside another": {
			`{"user":{"details":{"sequence":"18446744073709551615","changeDate":"2024-05-01T14:30:00.25+02:00"},"human":{"isEmailVerified":true}}}`,
			&signetv1.GetUserResponse{User: &signetv1.User{
				Details: &signetv1.Details{Sequence: 18446744073709551615,
					ChangeDate: timestamppb.New(time.Date(2024, 5, 1, 12, 30, 0, 250_000_000, time.UTC))},
				Type: &signetv1.User_Human_{Human: &signetv1.User_Human{IsEmailVerified: true}},
			}},
		},
		"and only one member of a oneof counts when the other is null": {
			`{"user":{"service":null,"human":{}}}`,
			&signetv1.GetUserResponse{User: &signetv1.User{Type: &signetv1.User_Human_{Human: &signetv1.User_Human{}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.want.ProtoReflect().New().Interface()
			if violations := unmarshal([]byte(c.body), got); violations != nil {
				t.Fatalf("refused:\n%s", lines(violations))
			}
			if !proto.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEveryTypeIsRead(t *testing.T) {
	for body, want := range map[string]string{
		`{"int32Field":-2147483648,"int32List":[2147483647,"-1",1.0,1e2,-0,10e-1,0.5e1]}`:              `int32_field: -2147483648 int32_list: [2147483647,-1,1,100,0,1,5]`,
		`{"uint32Field":4294967295,"fixed32Field":"1"}`:                                                `uint32_field: 4294967295 fixed32_field: 1`,
		`{"int64Field":"-9223372036854775808","sint64Field":9223372036854775807}`:                      `int64_field: -9223372036854775808 sint64_field: 9223372036854775807`,
		`{"uint64List":["18446744073709551615",18446744073709551615,1.8e19,0e999999999,0.0000001e22]}`: `uint64_list: [18446744073709551615,18446744073709551615,18000000000000000000,0,1000000000000000]`,
		`{"boolList":[true,false]}`:                                              `bool_list: [true,false]`,
		`{"colorList":["COLOR_RED",-1,2147483647]}`:                              `color_list: [COLOR_RED,COLOR_COLD,2147483647]`,
		`{"timeList":["0001-01-01T00:00:00Z","9999-12-31T23:59:59.999999999Z"]}`: `time_list: [{seconds:-62135596800},{seconds:253402300799 nanos:999999999}]`,
		`{"mask":"name,profile.firstName","maskList":[""]}`:                      `mask: {paths:["name","profile.first_name"]} mask_list: {}`,
	} {
		t.Run(body, func(t *testing.T) {
			got, expected := newKinds(), newKinds()
			if err := prototext.Unmarshal([]byte(want), expected); err != nil {
				t.Fatal(err)
			}
			if violations := unmarshal([]byte(body), got); violations != nil {
				t.Fatalf("refused:\n%s", lines(violations))
			}
			if !proto.Equal(got, expected) {
				t.Errorf("got %v, want %v", got, expected)
			}
		})
	}
}

func TestABodyIsRefused(t *testing.T) {
	const genders = "must be one of GENDER_FEMALE, GENDER_MALE, GENDER_DIVERSE"
	deep := func(n int) string { return strings.Repeat(`{"again":`, n) + "null" + strings.Repeat("}", n) }
	for name, c := range map[string]struct {
		into       proto.Message
		body, want string
	}{
		"when it is empty":      {&signetv1.UpdateMyProfileRequest{}, ``, `: the body must be a JSON object`},
		"when it is only space": {&signetv1.UpdateMyProfileRequest{}, " \n", `: the body must be a JSON object`},
		"when it is null":       {&signetv1.UpdateMyProfileRequest{}, `null`, `: the body must be a JSON object`},
		"when it is a list":     {&signetv1.UpdateMyProfileRequest{}, `[{}]`, `: the body must be a JSON object`},
		"when it has a mark upfront": {&signetv1.UpdateMyProfileRequest{}, "\ufeff{}",
			`: the body must be a JSON object`},
		"when something follows": {&signetv1.UpdateMyProfileRequest{}, "{}\n {}",
			`: the body is not valid JSON at line 2, column 2 (byte 4): nothing may follow the object`},
		"when a zero byte follows": {&signetv1.UpdateMyProfileRequest{}, "{}\x00",
			`: the body is not valid JSON at line 1, column 3 (byte 2): nothing may follow the object`},
		"with all its faults at once": {
			&signetv1.SetupOrganizationRequest{},
			`{"human":{"profile":{"firstName":1,"first_name":"x","gender":"GENDER_X","lastNaem":{"a":[1,"}",null]}},"email":[],"password":true},
			  "roles":["a",2,null],"org":"x","extra":null,"roles":[]}`,
			`human.profile.firstName: must be a string
human.profile.firstName: is given more than once
human.profile.gender: ` + genders + `
human.profile.lastNaem: is not a known field
human.email: must be an object
human.password: must be a string
roles[1]: must be a string
roles[2]: must not be null
org: must be an object
extra: is not a known field
roles: is given more than once`,
		},
		"when a field is repeated after null": {&signetv1.UpdateMyProfileRequest{},
			`{"firstName":null,"firstName":"a"}`, `firstName: is given more than once`},
		"when two members of a oneof are set": {&signetv1.GetUserResponse{},
			`{"user":{"human":{},"service":{"name":1}}}`,
			"user.service: is given together with another of human, service\nuser.service.name: must be a string"},
		"when an enum number is no int32": {&signetv1.UpdateMyProfileRequest{}, `{"gender":2147483648}`,
			"gender: " + genders},
		"when an enum number is in quotes": {&signetv1.UpdateMyProfileRequest{}, `{"gender":"1"}`,
			"gender: " + genders},
		"when an enum name has another case": {&signetv1.UpdateMyProfileRequest{}, `{"gender":"gender_male"}`,
			"gender: " + genders},
		"when a name has another case": {&signetv1.UpdateMyProfileRequest{}, `{"firstname":"a"}`,
			"firstname: is not a known field"},
		"when a list is a single value": {&signetv1.SetupOrganizationRequest{}, `{"roles":"a"}`,
			"roles: must be a list"},
		"when a string has a NUL": {&signetv1.UpdateMyProfileRequest{},
			`{"firstName":"a\u0000","lastName":2}`,
			"firstName: must not contain the character U+0000\nlastName: must be a string"},
		"when a surrogate is alone": {&signetv1.UpdateMyProfileRequest{},
			`{"firstName":"\ud83d","lastName":"\ude00\ud83d"}`,
			"firstName: must not contain half a surrogate pair\nlastName: must not contain half a surrogate pair"},
		"when a surrogate has a wrong mate": {&signetv1.UpdateMyProfileRequest{}, `{"firstName":"\ud83d\u0041"}`,
			"firstName: must not contain half a surrogate pair"},
		"when a string is not UTF-8": {&signetv1.UpdateMyProfileRequest{},
			"{\"firstName\":\"\xff\",\"lastName\":\"\\n\xc0\x80\"}",
			"firstName: must be valid UTF-8\nlastName: must be valid UTF-8"},
		"when a string has a raw line break": {&signetv1.UpdateMyProfileRequest{}, "{\"firstName\":\"ab\n\"}",
			"firstName: is not valid JSON at line 1, column 17 (byte 16): a control character in a string must be escaped"},
		"when an escape does not exist": {&signetv1.UpdateMyProfileRequest{}, `{"firstName":"\x41"}`,
			"firstName: is not valid JSON at line 1, column 15 (byte 14): a backslash must start one of JSON's escapes"},
		"when an escape is cut off": {&signetv1.UpdateMyProfileRequest{}, `{"firstName":"\u00`,
			"firstName: is not valid JSON at line 1, column 15 (byte 14): a backslash must start one of JSON's escapes"},
		"when a string does not end": {&signetv1.UpdateMyProfileRequest{}, `{"firstName":"ä`,
			"firstName: is not valid JSON at line 1, column 16 (byte 16): the string does not end"},
		"when a comma ends an object": {&signetv1.UpdateMyProfileRequest{}, `{"firstName":"a",}`,
			": the body is not valid JSON at line 1, column 18 (byte 17): expected a field name in double quotes"},
		"when a comma ends a list": {&signetv1.SetupOrganizationRequest{}, `{"roles":["a",]}`,
			"roles[1]: is not valid JSON at line 1, column 15 (byte 14): expected a value"},
		"when a comma is missing": {&signetv1.SetupOrganizationRequest{},
			`{"org":{"name":"a" "domain":"b"}}`,
			"org: is not valid JSON at line 1, column 20 (byte 19): expected a comma or }"},
		"when a colon is missing": {&signetv1.UpdateMyProfileRequest{}, `{"firstName"}`,
			": the body is not valid JSON at line 1, column 13 (byte 12): expected a colon after the field name"},
		"when a name has no quotes": {&signetv1.UpdateMyProfileRequest{}, `{firstName:1}`,
			": the body is not valid JSON at line 1, column 2 (byte 1): expected a field name in double quotes"},
		"when a word is misspelt": {&signetv1.UpdateIdentityProviderRequest{}, `{"autoRegister":True}`,
			"autoRegister: is not valid JSON at line 1, column 17 (byte 16): expected a value"},
		"when null is misspelt": {&signetv1.UpdateIdentityProviderRequest{}, `{"autoRegister":nul}`,
			"autoRegister: is not valid JSON at line 1, column 17 (byte 16): expected a value"},
		"when a number starts with zero": {newKinds(), `{"int32Field":01}`,
			"int32Field: is not valid JSON at line 1, column 15 (byte 14): expected a number"},
		"when an unknown field is no JSON": {&signetv1.UpdateMyProfileRequest{}, `{"a":{"b":[}}`,
			"a: is not a known field\na: is not valid JSON at line 1, column 12 (byte 11): expected a value"},
		"when a bool is a string or number": {newKinds(), `{"boolField":"true","boolList":[1,null]}`,
			"boolField: must be true or false\nboolList[0]: must be true or false\nboolList[1]: must not be null"},
		"when an integer is not whole or too large": {newKinds(),
			`{"int32List":[1.5,2147483648,"1.0","1e2","",true," 1","01","+1",1e-1,1e99999999999999999999]}`,
			each("int32List", 11, "must be an integer from -2147483648 to 2147483647")},
		"when an unsigned integer is negative": {newKinds(), `{"uint32Field":-1,"uint64Field":"-1"}`,
			"uint32Field: must be an integer from 0 to 4294967295\nuint64Field: must be an integer from 0 to 18446744073709551615"},
		"when a 64 bit integer is just too large": {newKinds(),
			`{"uint64Field":18446744073709551616,"int64List":["9223372036854775808",-9223372036854775809]}`,
			"uint64Field: must be an integer from 0 to 18446744073709551615\nint64List[0]: must be an integer from -9223372036854775808 to 9223372036854775807\nint64List[1]: must be an integer from -9223372036854775808 to 9223372036854775807"},
		"when a time is not RFC 3339": {newKinds(),
			`{"timeList":["2024-05-01","2024-05-01T1:30:00Z","2024-05-01 12:30:00Z","2024-02-30T12:30:00Z","2024-05-01T12:30:00,5Z","2024-05-01T12:30:00.0000000001Z","2024-05-01T12:30:00+24:00","2024-05-01T12:30:00+01:60","0000-12-31T00:00:00Z","0001-01-01T00:00:00+01:00",1]}`,
			each("timeList", 11, "must be an RFC 3339 time such as 2024-05-01T12:30:00Z")},
		"when a field mask is malformed": {newKinds(), `{"maskList":["first_name","a,,b",",","a b"]}`,
			each("maskList", 4, "must be a list of field paths separated by commas, such as name,profile.firstName")},
		"when a message cannot be read": {newKinds(),
			`{"any":{},"struct":{"a":1},"wrapped":"a","span":"1s","spanList":["1s"]}`,
			"any: has a type that cannot be sent as JSON\nstruct: has a type that cannot be sent as JSON\nwrapped: has a type that cannot be sent as JSON\n" +
				"span: has a type that cannot be sent as JSON\nspanList[0]: has a type that cannot be sent as JSON"},
		"when a type cannot be read": {dynamicpb.NewMessage(otherType),
			`{"doubleField":1,"floatList":[1],"bytesField":"aGk=","bytesList":[],"texts":{"a":"b"},"agains":{},"numbered":{"1":"a"},"counts":null}`,
			"doubleField: has a type that cannot be sent as JSON\nfloatList: has a type that cannot be sent as JSON\nbytesField: has a type that cannot be sent as JSON\nbytesList: has a type that cannot be sent as JSON\n" +
				"texts: has a type that cannot be sent as JSON\nagains: has a type that cannot be sent as JSON\nnumbered: has a type that cannot be sent as JSON"},
		"when it nests too deeply": {newKinds(), deep(strict.MaxDepth + 1),
			strings.Repeat("again.", strict.MaxDepth-1) + "again: is nested deeper than 32 levels"},
		"when an unknown field nests too deeply": {newKinds(), `{"x":` + strings.Repeat("[", 1_000_000),
			"x: is not a known field\nx: is nested deeper than 32 levels"},
		"with an unknown name made fit to be shown": {newKinds(), `{"a\n\u202e` + strings.Repeat("ä", 80) + `":1,"":2}`,
			"a\ufffd\ufffd" + strings.Repeat("ä", 57) + ": is not a known field\n\"\": is not a known field"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lines(unmarshal([]byte(c.body), c.into)); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
	t.Run("but not when it nests as deeply as allowed", func(t *testing.T) {
		if violations := unmarshal([]byte(deep(strict.MaxDepth)), newKinds()); violations != nil {
			t.Errorf("refused:\n%s", lines(violations))
		}
	})
}

func TestViolationsAreBounded(t *testing.T) {
	body := `{"roles":[` + strings.Repeat("1,", 1000) + `1]}`
	if n := len(unmarshal([]byte(body), &signetv1.SetupOrganizationRequest{})); n != strict.MaxViolations {
		t.Errorf("got %d violations, want %d", n, strict.MaxViolations)
	}
}

func TestViolationsNeverRepeatAValue(t *testing.T) {
	for _, value := range []string{`"hunter2`, `"hunter2\x"`, `["hunter2"]`, `{"name":"hunter2"}`, `"hunter2\u0000"`,
		`"hunter2"x`, "\"hunter2\xff\""} {
		for _, field := range []string{"int32Field", "stringField", "color", "time", "boolField", "span",
			"mask", "unknown"} {
			got := lines(unmarshal([]byte(`{"`+field+`":`+value+`}`), newKinds()))
			if strings.Contains(got, "hunter") {
				t.Errorf("%s %s: %s", field, value, got)
			}
		}
	}
}

func TestAMessageIsFilledAfresh(t *testing.T) {
	m := &signetv1.SetupOrganizationRequest{Roles: []string{"left over"}}
	if violations := unmarshal([]byte(`{"roles":["new"]}`), m); violations != nil {
		t.Fatal(lines(violations))
	}
	if !slices.Equal(m.Roles, []string{"new"}) {
		t.Errorf("got %v", m.Roles)
	}
}

func mustAny(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func kinds(t testing.TB, text string) proto.Message { t.Helper(); return filled(t, newKinds(), text) }

func other(t testing.TB, text string) proto.Message {
	t.Helper()
	return filled(t, dynamicpb.NewMessage(otherType), text)
}

func filled(t testing.TB, m proto.Message, text string) proto.Message {
	t.Helper()
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAMessageIsWritten(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 30, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		m    proto.Message
		want string
	}{
		"with empty scalars but without what is unset": {
			&signetv1.UpdateMyProfileRequest{},
			`{"firstName":"","lastName":"","displayName":"","preferredLanguage":"","gender":"GENDER_UNSPECIFIED"}`,
		},
		"with an optional field that is empty": {
			&signetv1.UpdateMyProfileRequest{NickName: proto.String("")},
			`{"firstName":"","lastName":"","nickName":"","displayName":"","preferredLanguage":"","gender":"GENDER_UNSPECIFIED"}`,
		},
		"with empty lists":             {&signetv1.ListUsersResponse{}, `{"users":[],"nextPageToken":""}`},
		"with unset messages left out": {&signetv1.SetupOrganizationResponse{}, `{"orgId":"","userId":""}`},
		"with numbers of 64 bits and times as strings": {
			&signetv1.UpdateMyProfileResponse{Details: &signetv1.Details{
				Sequence: 18446744073709551615, CreationDate: timestamppb.New(at),
				ChangeDate: timestamppb.New(at.Add(120 * time.Microsecond)),
			}},
			`{"details":{"sequence":"18446744073709551615","creationDate":"2024-05-01T12:30:00Z","changeDate":"2024-05-01T12:30:00.000120Z","resourceOwner":""}}`,
		},
		"with an enum number nobody defined": {
			&signetv1.UpdateIdentityProviderRequest{StylingType: 9},
			`{"idpId":"","name":"","stylingType":9,"autoRegister":false}`,
		},
		"with only the escapes that JSON needs": {
			&signetv1.EndSessionRequest{SessionId: "<&>\"\\/\b\f\n\r\t\x01\x7fä\u2028\u2029\u2030😀"},
			`{"sessionId":"<&>\"\\/\b\f\n\r\t\u0001` + "\x7fä" + `\u2028\u2029` + "\u2030" + `😀"}`,
		},
		"when it is an error with details": {
			&status.Status{Code: 3, Message: "no", Details: []*anypb.Any{
				mustAny(t, &errdetails.ErrorInfo{Reason: "INVALID_REQUEST", Domain: "signet",
					Metadata: map[string]string{"b": "2", "a": "1"}}),
				mustAny(t, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "roles[1]", Description: "is empty"}}}),
				mustAny(t, &errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)}),
				mustAny(t, durationpb.New(-time.Nanosecond)),
				mustAny(t, &emptypb.Empty{}),
				mustAny(t, mustAny(t, timestamppb.New(at))),
				{},
			}},
			`{"code":3,"message":"no","details":[` +
				`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_REQUEST","domain":"signet","metadata":{"a":"1","b":"2"}},` +
				`{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"roles[1]","description":"is empty","reason":""}]},` +
				`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.500s"},` +
				`{"@type":"type.googleapis.com/google.protobuf.Duration","value":"-0.000000001s"},` +
				`{"@type":"type.googleapis.com/google.protobuf.Empty","value":{}},` +
				`{"@type":"type.googleapis.com/google.protobuf.Any","value":{"@type":"type.googleapis.com/google.protobuf.Timestamp","value":"2024-05-01T12:30:00Z"}},` +
				`{}]}`,
		},
		"when it is empty": {&signetv1.EndSessionResponse{}, `{}`},
		"when it is nil":   {(*signetv1.EndSessionRequest)(nil), `{"sessionId":""}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := strict.MarshalJSON(c.m)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !json.Valid(got) {
				t.Error("encoding/json does not read it")
			}
		})
	}
}

func TestAMessageIsWrittenAfterWhatTheBufferHolds(t *testing.T) {
	got, err := strict.AppendJSON([]byte("x"), &signetv1.EndSessionResponse{})
	if err != nil || string(got) != "x{}" {
		t.Errorf("got %q, %v", got, err)
	}
}

// deep is a list in a list, and so on.
func deep(levels int) *structpb.Value {
	v := structpb.NewNullValue()
	for range levels {
		v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
	}
	return v
}

func TestAnyJSONIsWrittenAsItIs(t *testing.T) {
	const text = `{"a":[1,-2.5,1700000000000000,"x\"\n\u2028",true,false,null,[],{}],"b":{"c":{"d":""}},"e":[1e-07,1e+21],"é":0.000001}`
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if got, err := strict.MarshalJSON(s); string(got) != text || err != nil {
		t.Errorf("got  %s, %v\nwant %s", got, err, text)
	}
	if got, err := strict.MarshalJSON(deep(strict.MaxDepth - 1)); err != nil || !json.Valid(got) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAMessageIsNotWritten(t *testing.T) {
	for name, m := range map[string]proto.Message{
		"when a string is not UTF-8":          &signetv1.EndSessionRequest{SessionId: "\xff"},
		"when a time is out of range":         &timestamppb.Timestamp{Seconds: 253402300800},
		"when a time has too many nanos":      &timestamppb.Timestamp{Nanos: 1_000_000_000},
		"when a duration is out of range":     &durationpb.Duration{Seconds: -9223372036854775808},
		"when a duration has two signs":       &durationpb.Duration{Seconds: 1, Nanos: -1},
		"when an Any has an unknown type":     &anypb.Any{TypeUrl: "example.com/nobody.Knows"},
		"when an Any has broken content":      &anypb.Any{TypeUrl: "a/google.protobuf.Duration", Value: []byte{0xff}},
		"when an Any has content but no type": &anypb.Any{Value: []byte{0xff}},
		"when a Struct holds nothing":         &structpb.Struct{Fields: map[string]*structpb.Value{"a": {}}},
		"when a Struct holds no number":       structpb.NewNumberValue(math.NaN()),
		"when a Struct holds no UTF-8":        structpb.NewStringValue("\xff"),
		"when a Struct nests too deep":        deep(strict.MaxDepth + 1),
		"when it holds a wrapper":             kinds(t, `wrapped: {}`),
		"when a mask has no JSON name":        kinds(t, `mask: {paths: "a__b"}`),
		"when the keys of a map are numbers":  other(t, `numbered: {key: 1}`),
		"when it holds floating point":        other(t, `double_list: 1`),
		"when it holds bytes":                 other(t, `bytes_list: "a"`),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := strict.MarshalJSON(m); err == nil {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestAParameterSetsAField(t *testing.T) {
	for name, c := range map[string]struct{ field, text, want, problem string }{
		"of text":       {field: "string_field", text: " ä ", want: `string_field: " ä "`},
		"of empty text": {field: "maybe", text: "", want: `maybe: ""`},
		"but not with a NUL": {field: "string_field", text: "a\x00",
			problem: "must not contain the character U+0000"},
		"but not with broken UTF-8": {field: "string_field", text: "\xff", problem: "must be valid UTF-8"},
		"of true":                   {field: "bool_field", text: "true", want: `bool_field: true`},
		"but not of yes":            {field: "bool_field", text: "1", problem: "must be true or false"},
		"of a number":               {field: "uint32_field", text: "50", want: `uint32_field: 50`},
		"but not of a fraction": {field: "uint32_field", text: "5.0",
			problem: "must be an integer from 0 to 4294967295"},
		"but not of no number": {field: "uint64_field", text: "",
			problem: "must be an integer from 0 to 18446744073709551615"},
		"of an enum name":   {field: "color", text: "COLOR_RED", want: `color: COLOR_RED`},
		"of an enum number": {field: "color", text: "-1", want: `color: COLOR_COLD`},
		"but not of no enum": {field: "color", text: "",
			problem: "must be one of COLOR_NONE, COLOR_RED, COLOR_COLD"},
		"of a time": {field: "time", text: "1970-01-01T00:00:01Z", want: `time: {seconds: 1}`},
		"but not of half a time": {field: "time", text: "1970-01-01",
			problem: "must be an RFC 3339 time such as 2024-05-01T12:30:00Z"},
		"that is one more in a list": {field: "int32_list", text: "2", want: `int32_list: [7, 2]`},
		"that is one more time": {field: "time_list", text: "1970-01-01T00:00:01Z",
			want: `time_list: {seconds: 1}`},
		"but not a message":  {field: "again", text: "{}", problem: "cannot be set from text"},
		"but not a duration": {field: "span", text: "1s", problem: "cannot be set from text"},
		"but not another of its oneof": {field: "one_flag", text: "true",
			problem: "is given together with another of oneText, oneFlag, oneTime"},
		"and the same of a oneof again": {field: "one_text", text: "b", want: `one_text: "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			start := ""
			switch {
			case c.field == "int32_list":
				start = `int32_list: 7`
			case strings.HasPrefix(c.field, "one_"):
				start = `one_text: "a"`
			}
			m := kinds(t, start)
			problem := strict.SetField(m.ProtoReflect(), kindsType.Fields().ByName(protoreflect.Name(c.field)), c.text)
			if problem != c.problem {
				t.Fatalf("problem %q, want %q", problem, c.problem)
			}
			want := kinds(t, c.want)
			if problem != "" {
				want = kinds(t, start)
			}
			if !proto.Equal(m, want) {
				t.Errorf("got %v, want %v", m, want)
			}
		})
	}
}

func TestAParameterSetsNoFieldOfATypeThatCannotBeRead(t *testing.T) {
	for _, name := range []protoreflect.Name{"double_field", "float_list", "bytes_field", "texts"} {
		if problem := strict.SetField(dynamicpb.NewMessage(otherType), otherType.Fields().ByName(name),
			"1"); problem != "cannot be set from text" {
			t.Errorf("%s: %q", name, problem)
		}
	}
}

func TestAProtoPathBecomesAJSONPath(t *testing.T) {
	md := (&signetv1.SetupOrganizationRequest{}).ProtoReflect().Descriptor()
	for in, want := range map[string]string{
		"":                          "",
		"roles[1]":                  "roles[1]",
		"human.profile.first_name":  "human.profile.firstName",
		"human.no_such.first_name":  "human.no_such.first_name",
		"human.user_name.what_else": "human.userName.what_else",
	} {
		if got := strict.JSONPath(md, in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	if got := strict.JSONPath(otherType,
		`agains["a].b_c"].again_list[2].one_text`); got != `agains["a].b_c"].againList[2].oneText` {
		t.Errorf("got %s", got)
	}
}

// unmarshal is Unmarshal where only the violations matter.
func unmarshal(body []byte, m proto.Message) []errs.Violation {
	found, _ := strict.UnmarshalJSON(body, m)
	return found
}

func TestUnmarshalTellsWhetherItReadToTheEnd(t *testing.T) {
	for body, want := range map[string]bool{
		`{}`:                              true,
		`{"roles":[1],"no":2}`:            true,
		`{"roles":["a"]`:                  false,
		`{"roles":["a"]} x`:               false,
		`[]`:                              false,
		``:                                false,
		`{"human":{"password":"\u0000"}}`: true,
	} {
		if _, complete := strict.UnmarshalJSON([]byte(body), &signetv1.SetupOrganizationRequest{}); complete != want {
			t.Errorf("%s: complete is %v", body, complete)
		}
	}
}

// What a request of the API has can be read: whoever adds a field of another type learns it here.
func TestEveryRequestCanBeRead(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	var look func(md protoreflect.MessageDescriptor)
	look = func(md protoreflect.MessageDescriptor) {
		if seen[md.FullName()] {
			return
		}
		seen[md.FullName()] = true
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			text := `{"` + fd.JSONName() + `":true}`
			if fd.IsList() {
				text = `{"` + fd.JSONName() + `":[true]}`
			}
			if found := unmarshal([]byte(text), dynamicpb.NewMessage(md)); len(found) > 0 &&
				strings.Contains(found[0].Message, "cannot be sent") {
				t.Errorf("%s cannot be read", fd.FullName())
			}
			if m := fd.Message(); m != nil && m.ParentFile().Package() != "google.protobuf" {
				look(m)
			}
		}
	}
	for _, op := range costtest.Operations() {
		look(op.Method.Input())
	}
	if len(seen) < 100 {
		t.Errorf("only %d messages", len(seen))
	}
}
