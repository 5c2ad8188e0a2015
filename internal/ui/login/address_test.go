package login

import (
	"net/url"
	"reflect"
	"testing"

	"github.com/signet-idm/signet/internal/domain/idp"
)

// What the sign-in knows by its address comes back from a provider, which is given it as text.
func TestAnAddressIsReadAsItIsWritten(t *testing.T) {
	whole := address{request: "req", to: "/account?a=b&c", account: "ses_a", with: "totp", other: otherWay, again: true,
		arrival: "arr", linking: true, tried: true}
	for _, want := range []address{{}, {to: "/account"}, {linking: true}, whole} {
		query, err := url.ParseQuery(want.parameters().Encode())
		if got := readAddress(query); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%+v is read as %+v, %v", want, got, err)
		}
	}
	if n := len(whole.parameters()); n != 9 {
		t.Errorf("%d parameters are kept", n)
	}
	shown := address{part: idp.Part{Begins: "of", After: "idp_a"}}
	if kept := shown.parameters(); len(kept) != 0 {
		t.Errorf("the part of the providers is kept: %v", kept)
	}
}

func TestAWishIsAnAddressOfTheSignIn(t *testing.T) {
	for _, tt := range []struct {
		wish Wish
		want string
	}{
		{Wish{To: "/account"}, "to=%2Faccount"},
		{Wish{To: "/account", Account: "ses_a", Again: true}, "account=ses_a&again=1&to=%2Faccount"},
		{Wish{To: "/account", Other: true, Way: true}, "other=1&to=%2Faccount"},
		{Wish{To: "/account", Request: "req", Way: true}, "other=way&request=req"},
	} {
		if got := tt.wish.Parameters().Encode(); got != tt.want {
			t.Errorf("%+v is %s", tt.wish, got)
		}
	}
}
