package idp

import (
	"fmt"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// BenchmarkVouch is what a change of a JWT configuration costs for telling who answers for it: the owner of the
// organization, who does already, or an owner of the installation after them, or the other way round.
func BenchmarkVouch(b *testing.B) {
	owner := access.Memberships{"org_1": {access.OrgOwner}}
	above := access.Memberships{"org_1": {access.OrgOwner}, access.Installation: {access.IAMOwner}}
	for _, c := range []struct {
		name      string
		was, then access.Memberships
	}{{"as before", owner, owner}, {"by somebody with more", owner, above}, {"by somebody with less", above, owner}} {
		b.Run(c.name, func(b *testing.B) {
			jwt := JWT{Endpoint: "https://login.example.org/token", Issuer: "https://login.example.org",
				KeysEndpoint: "https://login.example.org/keys", HeaderName: "x-token"}
			p := &Provider{JWT: &jwt, Changer: &Changer{UserID: "usr_1", Roles: c.was, Version: 1}}
			caller := &access.Caller{UserID: "usr_1", OrgID: "org_1", Memberships: c.then}
			permit, err := caller.In("org_1", access.IDPWrite)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				to := jwt
				to.Endpoint = fmt.Sprint("https://login.example.org/token/", i)
				to.Issuer = fmt.Sprint("https://login.example.org/", i)
				all := to.all()
				facts := []event.Fact[Provider]{all.from(&jwt)}
				p.vouch(permit, facts, []event.Fact[Provider]{all})
			}
		})
	}
}
