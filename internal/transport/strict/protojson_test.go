package strict_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/transport/strict"
)

// targets are the messages that the comparisons with protojson read into.
var targets = []proto.Message{
	&signetv1.UpdateMyProfileRequest{},
	&signetv1.SetupOrganizationRequest{},
	&signetv1.GetUserResponse{},
	newKinds(),
}

// bodies are for all targets: what one of them knows, the others refuse.
var bodies = []string{
	``, `{}`, `null`, `[]`, `{} x`, `{"a":1}`, ` { } `,
	`{"firstName":"Ada","last_name":"L","nickName":"","gender":"GENDER_FEMALE"}`,
	`{"firstName":"\u00e4\ud83d\ude00\n","gender":3,"nickName":null}`,
	`{"firstName":"a","first_name":"b"}`, `{"gender":1.0,"displayName":"\u0000"}`,
	`{"org":{"name":"o","domain":""},"human":{"userName":"u","profile":{"gender":2},"email":{"isEmailVerified":true}},"roles":["a","b"]}`,
	`{"roles":[null]}`, `{"roles":[],"org":null}`, `{"human":{"profile":{"firstName":[{}]}}}`,
	`{"user":{"userId":"1","details":{"sequence":"7","creationDate":"2024-05-01T12:30:00.5+02:00"},"state":"STATE_ACTIVE","human":{"phone":"1"}}}`,
	`{"user":{"human":{},"service":{}}}`, `{"user":{"details":{"sequence":1e3,"changeDate":"2024-05-01T12:30:00,5Z"}}}`,
	`{"int32Field":1.50e1,"int64List":["-1",-0,1e2],"uint64Field":18446744073709551615}`,
	`{"sint64Field":0.0000001e22}`,
	`{"boolList":[true,false],"colorList":["COLOR_RED",-1,5]}`,
	`{"time":"0001-01-01T00:00:00Z","mask":"a.bC,d","oneTime":"2024-05-01T12:30:00Z","maybe":""}`,
	`{"again":{"again":{"oneFlag":true}},"againList":[{},{"oneText":""}]}`,
	`{"any":{"@type":"x"},"struct":{},"wrapped":"","span":"1s","one_text":"a","oneFlag":true}`,
	`{"stringField":"\"\\\/\b\f\t\u2028<>&","stringList":["ä","` + "\xff" + `","\ud800"]}`,
}

// compare checks one body against protojson. Whatever we accept must be JSON, mean the same to protojson, and survive
// being written and read again; and we write what protojson would.
func compare(t *testing.T, body []byte, target proto.Message) {
	ours, theirs := target.ProtoReflect().New().Interface(), target.ProtoReflect().New().Interface()
	violations := unmarshal(body, ours)
	if len(violations) > strict.MaxViolations {
		t.Fatalf("%d violations", len(violations))
	}
	if violations != nil {
		return
	}
	if !json.Valid(body) {
		t.Fatalf("accepted %q, which is not JSON", body)
	}
	if err := protojson.Unmarshal(body, theirs); err != nil {
		if !hasLongExponent(body) {
			t.Fatalf("accepted %q, but protojson says %v", body, err)
		}
	} else if !proto.Equal(ours, theirs) {
		t.Fatalf("%q\nmeans %v\nbut to protojson %v", body, ours, theirs)
	}
	written, err := strict.MarshalJSON(ours)
	if err != nil {
		t.Fatalf("write %v: %v", ours, err)
	}
	again := target.ProtoReflect().New().Interface()
	if violations := unmarshal(written, again); violations != nil || !proto.Equal(again, ours) {
		t.Fatalf("wrote %s\nread  %v %v\nwas   %v", written, again, violations, ours)
	}
	theirs = target.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal(written, theirs); err != nil || !proto.Equal(theirs, ours) {
		t.Fatalf("wrote %s\nto protojson that is %v %v\nwas %v", written, theirs, err, ours)
	}
	wanted, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(ours)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(values(t, written), values(t, wanted)) {
		t.Fatalf("wrote          %s\nprotojson would %s", written, wanted)
	}
}

// values is body without its order and its spelling.
func values(t *testing.T, body []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

// hasLongExponent finds the numbers that we accept and protojson does not: whole ones whose exponent makes up for many
// zeros or digits. protojson gives up on those without looking at the value.
func hasLongExponent(body []byte) bool {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		if n, ok := token.(json.Number); ok {
			if mantissa, exponent, ok := strings.Cut(strings.ToLower(n.String()), "e"); ok {
				x, err := json.Number(strings.TrimPrefix(exponent, "+")).Int64()
				if err != nil || math.Abs(float64(x)) > 18 || len(mantissa) > 18 {
					return true
				}
			}
		}
	}
}

func TestWhatIsAcceptedMeansTheSameToProtojson(t *testing.T) {
	for _, body := range bodies {
		for _, target := range targets {
			compare(t, []byte(body), target)
		}
	}
}

func TestProtojsonReadsWhatIsWritten(t *testing.T) {
	for _, m := range []proto.Message{
		profile(), user(),
		&status.Status{Code: 3, Message: "<no>", Details: []*anypb.Any{
			mustAny(t, &errdetails.ErrorInfo{Reason: "X", Metadata: map[string]string{"a": "1"}}),
			mustAny(t, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)}),
			mustAny(t, durationpb.New(time.Hour)),
		}},
	} {
		written, err := strict.MarshalJSON(m)
		if err != nil {
			t.Fatal(err)
		}
		got := m.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal(written, got); err != nil || !proto.Equal(got, m) {
			t.Errorf("%s\nis to protojson %v %v\nwas %v", written, got, err, m)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, body := range bodies {
		for i := range targets {
			f.Add(uint8(i), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, target uint8, body []byte) {
		compare(t, body, targets[int(target)%len(targets)])
	})
}

func profile() *signetv1.UpdateMyProfileRequest {
	return &signetv1.UpdateMyProfileRequest{
		FirstName: "Ada", LastName: "Lovelace", NickName: proto.String("Countess"), DisplayName: "Ada Lovelace",
		PreferredLanguage: "en", Gender: signetv1.Gender_GENDER_FEMALE,
	}
}

func user() *signetv1.GetUserResponse {
	at := timestamppb.New(time.Date(2024, 5, 1, 12, 30, 0, 123456000, time.UTC))
	return &signetv1.GetUserResponse{User: &signetv1.User{
		UserId: "01HX5ZZKBKACTAV9WEVGEMMVRZ",
		Details: &signetv1.Details{Sequence: 42, CreationDate: at, ChangeDate: at,
			ResourceOwner: "01HX5ZZKBKACTAV9WEVGEMMVS0"},
		State:    signetv1.User_STATE_ACTIVE,
		UserName: "ada", LoginNames: []string{"ada", "ada@example.com"},
		Type: &signetv1.User_Human_{Human: &signetv1.User_Human{
			Profile: &signetv1.User_Profile{FirstName: "Ada", LastName: "Lovelace", DisplayName: "Ada Lovelace",
				PreferredLanguage: "en"},
			Email: "ada@example.com", IsEmailVerified: true, Phone: "+41791234567",
		}},
	}, HasPassword: proto.Bool(false)}
}

func BenchmarkUnmarshal(b *testing.B) {
	for name, m := range map[string]proto.Message{"UpdateMyProfileRequest": profile(), "GetUserResponse": user()} {
		body, err := strict.MarshalJSON(m)
		if err != nil {
			b.Fatal(err)
		}
		into := m.ProtoReflect().New().Interface()
		b.Run(name+"/strictjson", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if violations := unmarshal(body, into); violations != nil {
					b.Fatal(violations)
				}
			}
		})
		b.Run(name+"/protojson", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := protojson.Unmarshal(body, into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMarshal(b *testing.B) {
	for name, m := range map[string]proto.Message{"UpdateMyProfileRequest": profile(), "GetUserResponse": user()} {
		var buffer []byte
		b.Run(name+"/strictjson", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buffer, err = strict.AppendJSON(buffer[:0], m); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/protojson", func(b *testing.B) {
			options := protojson.MarshalOptions{EmitDefaultValues: true}
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buffer, err = options.MarshalAppend(buffer[:0], m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
