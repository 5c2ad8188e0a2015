package user

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// What is left out of a document is put back, to the letter, and the state itself is left alone.
func TestAShortStateSaysTheSame(t *testing.T) {
	human := func(name, nameKey, first, last, display, displayKey, address, key string) User {
		return User{
			Standing:    Standing{State: Active},
			UserName:    name,
			UserNameKey: nameKey,
			Human: &Human{Profile: Profile{FirstName: first, LastName: last, DisplayName: display}, NameKey: displayKey,
				Email: Email{Address: address, Key: key}},
		}
	}
	for what, c := range map[string]struct {
		state User
		doc   string
	}{
		"plain": {human("Jo", "jo", "Jo", "Doe", "Jo Doe", "jo doe", "Jo@example.org", "jo@example.org"),
			`{"state":"active","userName":"Jo","human":{"profile":{"firstName":"Jo","lastName":"Doe"},"email":{"address":"Jo@example.org"}}}`},
		"others": {human("Zoë", "zoë!", "Zoë", "Ä", "Z. Ä", "z. ä", "Zoe@Ä.example", "zoe@xn--4ca.example"),
			`{"state":"active","userName":"Zoë","userNameKey":"zoë!","human":{"profile":{"firstName":"Zoë","lastName":"Ä","displayName":"Z. Ä"},"nameKey":"z. ä","email":{"address":"Zoe@Ä.example","key":"zoe@xn--4ca.example"}}}`},
		"without a name": {human("jo", "jo", "", "", "", "", "", ""),
			`{"state":"active","userName":"jo","human":{"profile":{"firstName":"","lastName":""},"email":{"address":""}}}`},
		"a service": {User{Standing: Standing{State: Active}, UserName: "robot", UserNameKey: "robot",
			Service: &Service{Name: "R", NameKey: "r"}},
			`{"state":"active","userName":"robot","service":{"name":"R","nameKey":"r"}}`},
		"gone": {User{Standing: Standing{State: Removed}}, `{"state":"removed"}`},
	} {
		want := c.state.clone()
		doc, err := json.Marshal(short(c.state))
		if err != nil || string(doc) != c.doc {
			t.Errorf("%s: %s, %v", what, doc, err)
		}
		var read User
		if err := json.Unmarshal(doc, &read); err != nil {
			t.Fatal(err)
		}
		if read = full(read); !reflect.DeepEqual(read, want) || !reflect.DeepEqual(c.state, want) {
			t.Errorf("%s: %+v, not %+v", what, read, want)
		}
	}
}

// Nodes of the version before need every key in an event. What comes of it is the same.
func TestEventsAreShortWhenEveryNodeReadsThem(t *testing.T) {
	n := NewHuman{UserName: "Jo", Profile: Profile{FirstName: "Jo", LastName: "Doe"}, Email: "Jo@example.org"}
	imported := (&Imported{NewHuman: n}).Fact()
	ahead, err := imported.Ahead()
	if err != nil {
		t.Fatal(err)
	}
	const left = `"userNameKey":"jo",` + `"nameKey":"jo doe",` + `"emailKey":"jo@example.org",` +
		`"displayName":"Jo Doe",`
	for name, add := range map[string]func(tx *event.Tx) error{
		"added": func(tx *event.Tx) error { _, err := AddHuman(tx, "usr_1", "org_1", &n); return err },
		"imported": func(tx *event.Tx) error {
			_, err := Kind.Create(tx, "usr_1", "org_1", imported.Recorded(tx, ahead))
			return err
		},
	} {
		var sealed [2]int
		var states [2]User
		for i, version := range []int{shortVersion - 1, shortVersion} {
			loaded := event.NewLoaded()
			loaded.FactVersion = version
			b := event.NewBatch(secret.NewMasterKey(), 1, loaded)
			if err := b.Run(&event.Command{Create: []event.Ref{Kind.Ref("usr_1")},
				Claims: []event.Claim{NameClaim("org_1", "jo")}, Decide: add}); err != nil {
				t.Fatal(err)
			}
			changes := b.Changes()
			u, err := Kind.Open(changes.Created[0])
			if err != nil {
				t.Fatal(err)
			}
			sealed[i], states[i] = len(changes.Events[0].Sealed), u.Data
		}
		if sealed[0]-sealed[1] != len(left) || !reflect.DeepEqual(states[0], states[1]) ||
			states[1].UserNameKey != "jo" || states[1].Human.Email.Key != "jo@example.org" ||
			states[1].Human.Profile.DisplayName != "Jo Doe" {
			t.Errorf("%s: %d bytes, %+v", name, sealed, states)
		}
	}
}

func TestAddressesAreFoundByDigestsOfBothLengths(t *testing.T) {
	long := EmailDigest("jo@example.org")
	for _, column := range []string{VerifiedEmail, EmailWord} {
		if forms := Kind.Forms(column, long); len(forms) != 2 || forms[0] != long || len(forms[1]) != 22 ||
			forms[1] != shortDigest(long) {
			t.Errorf("%s: %v", column, forms)
		}
		if forms := Kind.Forms(column, ""); len(forms) != 1 {
			t.Errorf("no address: %v", forms)
		}
	}
	if forms := Kind.Forms(byEmail, long); len(forms) != 1 {
		t.Errorf("another column: %v", forms)
	}
}
