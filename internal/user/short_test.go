package user

import (
	"encoding/json"
	"reflect"
	"testing"
)

// What is left out of a document is put back, to the letter, and the state itself is left alone.
func TestAShortStateSaysTheSame(t *testing.T) {
	human := func(name, nameKey, first, last, display, displayKey, address, key string) User {
		return User{Standing: Standing{State: Active}, UserName: name, UserNameKey: nameKey, Human: &Human{Profile: Profile{FirstName: first, LastName: last, DisplayName: display}, NameKey: displayKey,
			Email: Email{Address: address, Key: key}}}
	}
	for what, c := range map[string]struct {
		state User
		doc   string
	}{
		"plain": {human("Jo", "jo", "Jo", "Doe", "Jo Doe", "jo doe", "Jo@example.org", "jo@example.org"),
			`{"state":"active","userName":"Jo","human":{"profile":{"firstName":"Jo","lastName":"Doe"},"email":{"address":"Jo@example.org"}}}`},
		"others": {human("Zoë", "zoë!", "Zoë", "Ä", "Z. Ä", "z. ä", "Zoe@Ä.example", "zoe@xn--4ca.example"),
			`{"state":"active","userName":"Zoë","userNameKey":"zoë!","human":{"profile":{"firstName":"Zoë","lastName":"Ä","displayName":"Z. Ä"},"nameKey":"z. ä","email":{"address":"Zoe@Ä.example","key":"zoe@xn--4ca.example"}}}`},
		"without a name": {human("jo", "jo", "", "", "", "", "", ""), `{"state":"active","userName":"jo","human":{"profile":{"firstName":"","lastName":""},"email":{"address":""}}}`},
		"a service":      {User{Standing: Standing{State: Active}, UserName: "robot", UserNameKey: "robot", Service: &Service{Name: "R", NameKey: "r"}}, `{"state":"active","userName":"robot","service":{"name":"R","nameKey":"r"}}`},
		"gone":           {User{Standing: Standing{State: Removed}}, `{"state":"removed"}`},
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

func TestAddressesAreFoundByDigestsOfBothLengths(t *testing.T) {
	long := EmailDigest("jo@example.org")
	for _, column := range []string{VerifiedEmail, EmailWord} {
		if forms := Kind.Forms(column, long); len(forms) != 2 || forms[0] != long || len(forms[1]) != 22 || forms[1] != shortDigest(long) {
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
