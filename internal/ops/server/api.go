package server

import (
	"context"
	"net/http"

	"github.com/signet-idm/signet/gen/openapi"
	"github.com/signet-idm/signet/internal/api"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/life/counts"
	"github.com/signet-idm/signet/internal/life/mail"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/oidc"
	"github.com/signet-idm/signet/internal/transport/rpc"
	"github.com/signet-idm/signet/internal/ui/console"
)

// newAPI serves what programs can do. ready says whether requests should be sent here, details what an operator should
// know all the same.
func newAPI(b *base, a *areas, ready func(context.Context) error, details func() map[string]string) (
	*rpc.Handler, error) {

	var alias *rpc.Alias
	if b.config.ZitadelV1 {
		alias = zitadelV1
	}
	clock := b.config.Clock
	return rpc.New(rpc.Config{
		Alias:        alias,
		Services:     services(b, a),
		Authenticate: console.Tokens{Sessions: a.sessions}.Authenticate,
		Prove: func(ctx context.Context, r *http.Request, token, key string, reads bool) (string, error) {
			proven := oauth.ProvenRequest{Proofs: r.Header["Dpop"], Method: r.Method, Path: r.URL.EscapedPath()}
			return a.grants.Nonce(), a.grants.ProveToken(ctx, proven, token, key, reads)
		},
		Proven: a.sessions.Proven,
		Ahead:  b.store.Ahead,
		Organization: func(ctx context.Context, caller *access.Caller, id string, p access.Permission) error {
			return org.Enter(ctx, b.store, caller, id, p, clock())
		},
		Opened:      a.openings.Note,
		Check:       api.Checker{Clock: clock}.Check,
		CORSOrigins: b.config.CORSOrigins,
		Bulk:        a.limits.bulk,
		Log:         b.log,
		OpenAPI:     openapi.Document,
		Ready:       ready,
		Details:     details,
	})
}

// services are those of the definition, each with what it works on.
func services(b *base, a *areas) []rpc.Service {
	st, master, clock, withMail := b.store, b.master, b.config.Clock, a.mails.sender != nil
	return []rpc.Service{
		{Name: "signet.v1.UserService", Impl: api.Users{Store: st, Hasher: a.limits.hasher, Sessions: a.sessions,
			Master: master, Clock: clock, Mail: withMail, Deliver: a.mails.deliver}},
		{Name: "signet.v1.OrganizationService", Impl: api.Organizations{Setup: a.setup, Invitations: a.invitations,
			Master: master, Clock: clock, Cleaner: a.cleaner, Resolver: sharedResolver{b.config.Resolver, a.outgoing.calls},
			Counts: counts.New(st, clock)}},
		{Name: "signet.v1.IdentityProviderService", Impl: api.IdentityProviders{Store: st, Master: master, Clock: clock,
			Checker: a.federation}},
		{Name: "signet.v1.SessionService",
			Impl: api.Sessions{Sessions: a.sessions, Master: master, OwnPages: a.ownPages}},
		{Name: "signet.v1.MemberService", Impl: api.Members{Store: st, Master: master, Clock: clock}},
		{Name: "signet.v1.GroupService", Impl: api.Groups{Store: st, Master: master, Clock: clock}},
		{Name: "signet.v1.RoleService", Impl: api.Roles{Store: st, Master: master, Clock: clock}},
		{Name: "signet.v1.NameService", Impl: api.Names{Store: st, Clock: clock}},
		{Name: "signet.v1.PolicyService", Impl: api.Policies{Store: st, Sessions: a.federated, Mail: withMail}},
		{Name: "signet.v1.CredentialService", Impl: api.Credentials{Store: st, Sessions: a.sessions, Master: master,
			Refusals: a.grants.Refusals}},
		{Name: "signet.v1.ApplicationService", Impl: api.Applications{Store: st, Master: master, Clock: clock,
			Refusals: a.grants.Refusals}},
		{Name: "signet.v1.WebhookService", Impl: api.Webhooks{Webhooks: a.webhooks.Webhooks}},
		{Name: "signet.v1.SigningKeyService", Impl: api.SigningKeys{Keys: a.keys, Clock: clock}},
		{Name: "signet.v1.FactorService", Impl: api.Factors{Store: st, Sessions: a.sessions}},
		{Name: "signet.v1.RememberedDeviceService", Impl: api.RememberedDevices{Sessions: a.sessions, Master: master}},
		{Name: "signet.v1.LinkService", Impl: api.Links{Store: st, Sessions: a.federated}},
		{Name: "signet.v1.ProjectService",
			Impl: api.Projects{Store: st, Master: master, Clock: clock, Cleaner: a.cleaner}},
		{Name: "signet.v1.MetadataService", Impl: api.Metadata{Store: st}},
		{Name: "signet.v1.InvitationService", Impl: api.Invitations{Invitations: a.invitations, Newcomers: a.newcomers,
			Clock: clock}},
		{Name: "signet.v1.RegistrationService", Impl: api.Registrations{Registrations: a.registrations}},
		{Name: "signet.v1.AccessService", Impl: api.NewAccess(st, clock, b.defaultOrg)},
		{Name: "signet.v1.StatusService", Impl: newStatus(b, a)},
		{Name: "signet.v1.SignInTrialService", Impl: api.SignInTrials{Grants: a.grants}},
		{Name: "signet.v1.SignInCountService", Impl: api.SignInCounts{Tally: a.counted}},
		{Name: "signet.v1.EventService", Impl: api.Events{Journal: journal.New(st, master), Store: st, Master: master}},
	}
}

// newStatus tells how the node and the installation are doing.
func newStatus(b *base, a *areas) api.Status {
	out := api.Status{Version: b.config.Version, Engine: "SQLite", Started: b.config.Clock(), Clock: b.config.Clock,
		Log: b.store, Followers: []string{oidc.FollowerName}, Webhooks: a.webhooks.counts, Mail: a.mails.sender != nil,
		Keys: a.keys}
	if b.config.Database != "" {
		out.Engine = "PostgreSQL"
	}
	if out.Mail {
		out.Followers = append(out.Followers, mail.FollowerName)
	}
	return out
}
