package api_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// oldSession gives an actor with a session whose proof is a moment too old to be recent.
func (w *World) oldSession(t *testing.T, as *Actor) *Actor {
	t.Helper()
	in := *as
	token, hash := secret.NewToken(secret.Session)
	w.hide(token)
	w.command(t, event.Command{
		Write: []event.Ref{session.Kind.Ref(session.IDFor(as.UserID))}, Read: []event.Ref{user.Kind.Ref(as.UserID)},
		Decide: func(tx *event.Tx) error {
			u, err := user.Kind.Get(tx, as.UserID)
			if err != nil {
				return err
			}
			tx.PutToken(event.Token{
				ID:      event.NewID("ses"),
				Hash:    hash,
				Kind:    string(secret.Session),
				UserID:  u.ID,
				Epoch:   u.Data.SessionEpoch,
				Created: tx.Now() - (15 * time.Minute).Microseconds() - 1,
				Expires: tx.Now() + time.Hour.Microseconds(),
			})
			return nil
		},
	})
	in.Token = token
	return &in
}

// proofCases let people who may everything at every operation that changes how they sign in, with themselves as its
// target: by a personal access token, by an application, and in a session whose proof is old.
func proofCases(t *testing.T, w *World) (cases []Case) {
	s := w.newScene(t)
	owner := w.addUser(t, person{Org: s.org, Domain: s.domain,
		Elsewhere: map[string][]access.Role{access.Installation: {access.IAMOwner}}})
	old, fresh := w.oldSession(t, owner), w.signedIn(t, owner)
	application := &Actor{UserID: owner.UserID, OrgID: owner.OrgID,
		Token: w.accessToken(t, owner, w.server.URL(), access.APIScopeNames...)}
	service := w.addUser(t, person{Org: s.org, Service: true,
		Elsewhere: map[string][]access.Role{access.Installation: {access.IAMOwner}}})
	for _, op := range operations {
		proof := op.rule.GetProof()
		if proof == signetv1.Proof_PROOF_UNSPECIFIED {
			continue
		}
		req := s.sample(op)
		if op.has("userId") {
			req = with(req, "userId", owner.UserID)
		}
		try := func(name string, as *Actor, want Want) {
			cases = append(cases, Case{Name: op.name() + "/" + name, As: as, Req: req, Header: op.header(), Want: want})
		}
		try("by a token", owner, sessionRequired)
		try("by an application", application, refused(codes.PermissionDenied, anyReason))
		if proof != signetv1.Proof_PROOF_SESSION {
			try("in an old session", old, notRecent)
		}
		if proof == signetv1.Proof_PROOF_RECENT_PERSON {
			try("by a service user", service, sessionRequired)
			for name, lesser := range map[string]*Actor{"an owner of the organization": s.owner,
				"an owner of another one": w.elsewhere(t).owner, "a manager": s.holder(t, "ORG_SETTINGS_MANAGER")} {
				try("in a session of "+name, w.signedIn(t, lesser), permissionDenied)
			}
		}
	}
	if len(cases) < 75 {
		t.Errorf("there are %d cases only", len(cases))
	}
	// What makes access less is possible with any of them, and what is about others asks for no proof.
	other := w.addUser(t, person{Org: s.org, Domain: s.domain})
	robot := w.addUser(t, person{Org: s.org, Service: true, Roles: []access.Role{access.OrgOwner}})
	for name, as := range map[string]*Actor{"a token": owner, "an old session": old} {
		cases = append(cases,
			Case{Name: "revoke a token by " + name, As: as, Req: &signetv1.RevokeMyTokenRequest{TokenId: "pat_x"},
				Want: refused(codes.NotFound, "TOKEN_NOT_FOUND")},
			Case{Name: "end a session by " + name, As: as, Req: &signetv1.EndSessionRequest{SessionId: "ses_x"},
				Want: noSession},
			Case{Name: "an address of somebody else by " + name, As: as,
				Req:    &signetv1.SetUserEmailRequest{UserId: other.UserID, Email: "else@mail.example"},
				Header: header(orgID, s.org), Want: ok},
			Case{Name: "the own profile by " + name, As: as, Req: profile(), Want: ok})
	}
	return append(cases,
		Case{Name: "a service user makes itself a token", As: robot,
			Req: &signetv1.CreateUserTokenRequest{UserId: robot.UserID}, Want: ok},
		Case{Name: "the own phone in a session", As: fresh,
			Req: &signetv1.SetMyPhoneRequest{Phone: "+49-30-1"}, Want: ok},
		Case{Name: "the own phone as an administrator", As: fresh,
			Req:    &signetv1.SetUserPhoneRequest{UserId: owner.UserID, Phone: "+49-30-1"},
			Header: header(orgID, s.org), Want: ok})
}
