package mail

import (
	"strings"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestAPersonIsToldOfLinks(t *testing.T) {
	p := newPost(t)
	p.person(t, "jo", true, jo)
	eventtest.Given(t, p.Store, idp.Kind, "idp_a", "org_a", nil, idp.JWTAdded{General: idp.General{Name: "Corp <b>"}})
	p.Advance(time.Second)
	added := user.LinkAdded{LinkID: "lnk_1", Provider: "idp_a",
		Personal: user.LinkFacts{Issuer: "i", Subject: "sub-1", Name: "name-1"}}
	for _, c := range []struct {
		fact event.Fact[user.User]
		kind Kind
	}{
		{added, LinkAdded},
		{user.LinkConfirmed{LinkID: "lnk_1", Confirmed: user.Confirmation{Version: 2, By: "usr_jo"}}, LinkConfirmed},
		{user.LinkRemoved{LinkID: "lnk_1", Provider: "idp_a"}, LinkRemoved},
		{user.LinkAdded{LinkID: "lnk_2", Provider: "idp_a", ByEmail: true,
			Personal: user.LinkFacts{Issuer: "i", Subject: "2"}}, LinkedByEmail},
		{user.LinkRemoved{LinkID: "lnk_2", Provider: "idp_gone"}, LinkRemoved},
	} {
		var claims []event.Claim
		if l, ok := c.fact.(user.LinkAdded); ok {
			claims = append(claims, user.LinkClaim(l.Provider, l.Personal.Issuer, l.Personal.Subject))
		}
		eventtest.Given(t, p.Store, user.Kind, "usr_jo", "", claims, c.fact)
		must(t, p.deliver(t))
		m := p.one(t)
		if m.Kind != c.kind || strings.Contains(m.Text+m.HTML, "sub-1") || strings.Contains(m.HTML, "<b>") {
			t.Errorf("%s: %+v", c.kind, m)
		}
		if named := strings.Contains(m.Text, "Corp"); named == strings.Contains(m.Text, "idp_gone") {
			t.Errorf("%s does not name the provider: %s", c.kind, m.Text)
		}
	}
}
