package event

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
)

func TestHashCoversEveryFieldButThePosition(t *testing.T) {
	original := Event{
		Position: 1,
		ObjectID: "usr_1",
		Sequence: 2,
		Org:      "org_1",
		Type:     "user.added.v1",
		Payload:  []byte("{}"),
		Sealed:   []byte("sealed"),
		KeyID:    "key_1",
		PrevHash: []byte("hash"),
		Origin:   Origin{Actor: "usr_2", RequestID: "req_1"},
		Time:     3,
	}
	// change alters every field it can reach, one at a time.
	var change func(path string, v reflect.Value, e *Event)
	change = func(path string, v reflect.Value, e *Event) {
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue // it is not stored
			}
			field, name := v.Field(i), path+v.Type().Field(i).Name
			before := reflect.New(field.Type()).Elem()
			before.Set(field)
			switch field.Kind() {
			case reflect.Struct:
				change(name+".", field, e)
				continue
			case reflect.String:
				field.SetString(field.String() + "x")
			case reflect.Int64:
				field.SetInt(field.Int() + 1)
			case reflect.Uint64:
				field.SetUint(field.Uint() + 1)
			case reflect.Slice:
				field.SetBytes(append(bytes.Clone(field.Bytes()), 'x'))
			default:
				t.Fatalf("%s has a kind this test does not know", name)
			}
			same := bytes.Equal(e.Hash(), original.Hash())
			if same != (name == "Position") {
				t.Errorf("with another %s the hash is the same: %v", name, same)
			}
			field.Set(before)
		}
	}
	e := original
	change("", reflect.ValueOf(&e).Elem(), &e)
	if !bytes.Equal(e.Hash(), original.Hash()) {
		t.Error("the test did not put everything back")
	}
}

func TestHashKeepsNeighbouringFieldsApart(t *testing.T) {
	a := Event{ObjectID: "usr_1", Org: "org", KeyID: "k", Origin: Origin{Actor: "ab", RequestID: "c"}}
	b := a
	b.Actor, b.RequestID = "a", "bc"
	if bytes.Equal(a.Hash(), b.Hash()) {
		t.Error("what moves from one field to the next does not change the hash")
	}
}

func TestIfMatch(t *testing.T) {
	for _, c := range []struct {
		name     string
		match    IfMatch
		sequence uint64
		refused  bool
	}{
		{"asks for nothing", IfMatch{}, 7, false},
		{"is at the sequence", IfMatch{Set: true, Sequence: 7}, 7, false},
		{"is ahead", IfMatch{Set: true, Sequence: 8}, 7, true},
		{"is behind", IfMatch{Set: true, Sequence: 6}, 7, true},
		{"is zero", IfMatch{Set: true}, 7, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.match.Check(c.sequence)
			if (err != nil) != c.refused {
				t.Fatalf("%v", err)
			}
			if e, ok := err.(*errs.Error); ok &&
				(e.Kind != errs.Aborted || e.Reason != SequenceMismatch || !strings.Contains(e.Message, "7")) {
				t.Errorf("%v", e)
			}
		})
	}
}

func TestClaimsOfDifferentSpacesDiffer(t *testing.T) {
	if (Claim{"a", "bc"}).Digest() == (Claim{"ab", "c"}).Digest() {
		t.Error("the space runs into the name")
	}
}

func TestTimesAreMicrosecondsInUTC(t *testing.T) {
	at := time.Date(2030, 5, 6, 7, 8, 9, 123456789, time.FixedZone("x", 3600))
	if got := Time(Micros(at)); !got.Equal(at.Truncate(time.Microsecond)) || got.Location() != time.UTC {
		t.Errorf("%v became %v", at, got)
	}
}

func TestTypeNamesItsKind(t *testing.T) {
	if got := Type("user.profile_changed.v1").Kind(); got != "user" {
		t.Errorf("%q", got)
	}
}

func TestIdentifiersSortByTime(t *testing.T) {
	last := ""
	for range 1000 {
		id := NewID("usr")
		if id <= last || len(id) != len("usr_")+32 || !strings.HasPrefix(id, "usr_") {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
}
