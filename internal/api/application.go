package api

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/project"
	"github.com/signet-idm/signet/internal/eventlog/event"
	refused "github.com/signet-idm/signet/internal/oauth/refusal"
)

// Applications implements ApplicationService.
type Applications struct {
	Store  event.Store
	Master secret.MasterKey
	Clock  func() time.Time
	// Refusals are those of this node.
	Refusals *refused.Book
}

var _ signetv1connect.ApplicationServiceHandler = Applications{}

// AddApplication creates an application in the context organization.
func (s Applications) AddApplication(ctx context.Context,
	r *signetv1.AddApplicationRequest) (*signetv1.AddApplicationResponse, error) {
	created, err := app.Add(ctx, s.Store, call.From(ctx).Permit,
		app.New{Name: r.GetName(), Type: appTypes.name(r.GetType()), Settings: settingsOf(r)})
	if err != nil {
		return nil, err
	}
	return &signetv1.AddApplicationResponse{Details: complete(created.Details), AppId: created.ID,
		ClientSecret: created.Secret}, nil
}

// GetApplication reads an application of the context organization.
func (s Applications) GetApplication(ctx context.Context,
	r *signetv1.GetApplicationRequest) (*signetv1.GetApplicationResponse, error) {
	a, err := app.Get(ctx, s.Store, call.From(ctx).Permit, r.GetAppId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetApplicationResponse{App: s.show(a)}, nil
}

// ListApplications reads a page of the applications of the context organization.
func (s Applications) ListApplications(ctx context.Context,
	r *signetv1.ListApplicationsRequest) (*signetv1.ListApplicationsResponse, error) {
	filter := app.Filter{Name: r.GetName(), State: appStates.name(r.GetState()), Type: appTypes.name(r.GetType())}
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[app.App], *event.Cursor, error) {
			return app.List(ctx, s.Store, call.From(ctx).Permit, filter, after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListApplicationsResponse{NextPageToken: next}
	for _, a := range found {
		out.Apps = append(out.Apps, s.show(a))
	}
	return out, nil
}

// DeactivateApplication switches an application of the context organization off.
func (s Applications) DeactivateApplication(ctx context.Context,
	r *signetv1.DeactivateApplicationRequest) (*signetv1.DeactivateApplicationResponse, error) {
	info := call.From(ctx)
	d, err := app.Deactivate(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.DeactivateApplicationResponse{Details: changed(d)}, nil
}

// ReactivateApplication switches an application of the context organization on again.
func (s Applications) ReactivateApplication(ctx context.Context,
	r *signetv1.ReactivateApplicationRequest) (*signetv1.ReactivateApplicationResponse, error) {
	info := call.From(ctx)
	d, err := app.Reactivate(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.ReactivateApplicationResponse{Details: changed(d)}, nil
}

// RemoveApplication ends an application of the context organization.
func (s Applications) RemoveApplication(ctx context.Context,
	r *signetv1.RemoveApplicationRequest) (*signetv1.RemoveApplicationResponse, error) {
	info := call.From(ctx)
	d, err := app.Remove(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveApplicationResponse{Details: changed(d)}, nil
}

// GenerateApplicationSecret makes a new secret for an application of the context organization.
func (s Applications) GenerateApplicationSecret(ctx context.Context,
	r *signetv1.GenerateApplicationSecretRequest) (*signetv1.GenerateApplicationSecretResponse, error) {
	info := call.From(ctx)
	keep := time.Duration(r.GetKeepOldSeconds()) * time.Second
	d, text, err := app.GenerateSecret(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, keep)
	if err != nil {
		return nil, err
	}
	return &signetv1.GenerateApplicationSecretResponse{Details: changed(d), ClientSecret: text}, nil
}

// RemoveApplicationSecret removes the secret of an application of the context organization.
func (s Applications) RemoveApplicationSecret(ctx context.Context,
	r *signetv1.RemoveApplicationSecretRequest) (*signetv1.RemoveApplicationSecretResponse, error) {
	info := call.From(ctx)
	d, err := app.RemoveSecret(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveApplicationSecretResponse{Details: changed(d)}, nil
}

// AddApplicationKey adds a public key to an application of the context organization.
func (s Applications) AddApplicationKey(ctx context.Context,
	r *signetv1.AddApplicationKeyRequest) (*signetv1.AddApplicationKeyResponse, error) {
	info := call.From(ctx)
	d, id, err := app.AddKey(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, newKey(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.AddApplicationKeyResponse{Details: changed(d), KeyId: id}, nil
}

// RemoveApplicationKey removes a key of an application of the context organization.
func (s Applications) RemoveApplicationKey(ctx context.Context,
	r *signetv1.RemoveApplicationKeyRequest) (*signetv1.RemoveApplicationKeyResponse, error) {
	info := call.From(ctx)
	d, err := app.RemoveKey(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, r.GetKeyId())
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveApplicationKeyResponse{Details: changed(d)}, nil
}

// SetApplicationAPIAccess says what an application of the context organization may do here.
func (s Applications) SetApplicationAPIAccess(ctx context.Context,
	r *signetv1.SetApplicationAPIAccessRequest) (*signetv1.SetApplicationAPIAccessResponse, error) {
	info := call.From(ctx)
	d, err := app.SetAPIAccess(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, r.GetScopes())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetApplicationAPIAccessResponse{Details: changed(d)}, nil
}

// SetApplicationOwnSignIn says whether an application of the context organization may have a sign-in page of its own.
func (s Applications) SetApplicationOwnSignIn(ctx context.Context,
	r *signetv1.SetApplicationOwnSignInRequest) (*signetv1.SetApplicationOwnSignInResponse, error) {
	info := call.From(ctx)
	d, err := app.SetOwnSignIn(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, r.GetAllowed())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetApplicationOwnSignInResponse{Details: changed(d)}, nil
}

// SetApplicationFirstParty says whether an application of the context organization is the operator's own.
func (s Applications) SetApplicationFirstParty(ctx context.Context,
	r *signetv1.SetApplicationFirstPartyRequest) (*signetv1.SetApplicationFirstPartyResponse, error) {
	info := call.From(ctx)
	d, err := app.SetFirstParty(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, r.GetFirstParty())
	if err != nil {
		return nil, err
	}
	return &signetv1.SetApplicationFirstPartyResponse{Details: changed(d)}, nil
}

// SetApplicationRoleSettings says which project an application of the context organization belongs to, and what it is
// told about people there.
func (s Applications) SetApplicationRoleSettings(ctx context.Context,
	r *signetv1.SetApplicationRoleSettingsRequest) (*signetv1.SetApplicationRoleSettingsResponse, error) {
	info := call.From(ctx)
	d, err := project.SetRoleSettings(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch, roleSettings(r))
	if err != nil {
		return nil, err
	}
	return &signetv1.SetApplicationRoleSettingsResponse{Details: changed(d)}, nil
}

// ListAllOrganizationsApplications reads a page of the applications for all organizations.
func (s Applications) ListAllOrganizationsApplications(ctx context.Context,
	r *signetv1.ListAllOrganizationsApplicationsRequest) (*signetv1.ListAllOrganizationsApplicationsResponse, error) {
	found, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]*event.Object[app.App], *event.Cursor, error) {
			return app.ListOpen(ctx, s.Store, call.From(ctx).Permit, after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListAllOrganizationsApplicationsResponse{NextPageToken: next}
	for _, a := range found {
		out.Apps = append(out.Apps, s.show(a))
	}
	return out, nil
}

func (s Applications) show(a *event.Object[app.App]) *signetv1.Application {
	st := &a.Data
	out := &signetv1.Application{
		AppId:                a.ID,
		Details:              complete(a.Details()),
		State:                appStates.number(st.State),
		Type:                 appTypes.number(st.Type),
		Name:                 st.Name,
		AuthMethod:           authMethods.number(st.AuthMethod),
		RedirectUris:         st.RedirectURIs,
		PostLogoutUris:       st.PostLogoutURIs,
		BackChannelLogoutUri: st.BackChannelLogoutURI,
		InitiateLoginUri:     st.InitiateLoginURI,
		KeySetUri:            st.KeySetURI,
		TokenFormat:          tokenFormats.number(st.TokenFormat),
		SigningAlgorithm:     signingAlgorithms.number(st.SigningAlgorithm),
		AccessTokenSeconds:   int32(st.AccessTokenSeconds),
		RefreshTokenSeconds:  int32(st.RefreshTokenSeconds),
		ConsentRequired:      st.ConsentRequired,
		AllOrganizations:     st.AllOrganizations,
		HasSecret:            st.HasSecret,
		SecretByOwner:        st.SecretByOwner,
		OwnSignIn:            st.OwnSignIn,
		ApiScopes:            st.APIScopes,
		ExactAuthMethod:      st.ExactAuthMethod,
		IdTokenClaims:        idTokenClaims.number(cmp.Or(st.IDTokenClaims, app.MinimalClaims)),
		RoleSettings:         showRoleSettings(st.RoleSettings),
		ClaimMappings:        showClaimMappings(st.ClaimMappings),
		ClaimMappingWarnings: claimMappingWarnings(st.LeftOut()),

		PushedRequestsRequired: st.PushedRequired,
		DpopRequired:           st.DPoPRequired,
	}
	if by := st.FirstParty; by != nil {
		out.FirstParty = &signetv1.FirstParty{UserId: by.By, MarkDate: timestamppb.New(event.Time(by.At))}
	}
	for _, g := range st.GrantTypes {
		out.GrantTypes = append(out.GrantTypes, grantTypes.number(g))
	}
	if st.OldSecretUntil > event.Micros(s.Clock()) {
		out.OldSecretExpirationDate = timestamppb.New(event.Time(st.OldSecretUntil))
	}
	for _, k := range st.Keys {
		key := &signetv1.ApplicationKey{KeyId: k.ID, CreationDate: timestamppb.New(event.Time(k.Created)),
			PublicKey: k.Public, ByOwner: k.ByOwner}
		if k.Expires != 0 {
			key.ExpirationDate = timestamppb.New(event.Time(k.Expires))
		}
		out.Keys = append(out.Keys, key)
	}
	return out
}
