package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
)

// SetApplicationClaimMappings says which claims an application of the context organization declares.
func (s Applications) SetApplicationClaimMappings(ctx context.Context,
	r *signetv1.SetApplicationClaimMappingsRequest) (*signetv1.SetApplicationClaimMappingsResponse, error) {
	info := call.From(ctx)
	d, leftOut, err := app.SetClaimMappings(ctx, s.Store, info.Permit, r.GetAppId(), info.IfMatch,
		claimMappings(r.GetMappings()))
	if err != nil {
		return nil, err
	}
	return &signetv1.SetApplicationClaimMappingsResponse{Details: changed(d), Warnings: claimMappingWarnings(leftOut)}, nil
}

var claimSourceNames = enum[signetv1.ClaimMapping_Source, app.ClaimSource]{
	signetv1.ClaimMapping_SOURCE_USER_ID:            app.FromUserID,
	signetv1.ClaimMapping_SOURCE_LOGIN_NAME:         app.FromLoginName,
	signetv1.ClaimMapping_SOURCE_USER_NAME:          app.FromUserName,
	signetv1.ClaimMapping_SOURCE_DISPLAY_NAME:       app.FromDisplayName,
	signetv1.ClaimMapping_SOURCE_FIRST_NAME:         app.FromFirstName,
	signetv1.ClaimMapping_SOURCE_LAST_NAME:          app.FromLastName,
	signetv1.ClaimMapping_SOURCE_NICK_NAME:          app.FromNickName,
	signetv1.ClaimMapping_SOURCE_PREFERRED_LANGUAGE: app.FromLanguage,
	signetv1.ClaimMapping_SOURCE_GENDER:             app.FromGender,
	signetv1.ClaimMapping_SOURCE_EMAIL:              app.FromEmail,
	signetv1.ClaimMapping_SOURCE_PHONE:              app.FromPhone,
	signetv1.ClaimMapping_SOURCE_METADATA:           app.FromMetadata,
	signetv1.ClaimMapping_SOURCE_GROUP_NAMES:        app.FromGroupNames,
	signetv1.ClaimMapping_SOURCE_GROUP_IDS:          app.FromGroupIDs,
	signetv1.ClaimMapping_SOURCE_APP_ROLES:          app.FromAppRoles,
	signetv1.ClaimMapping_SOURCE_ORG_ID:             app.FromOrgID,
	signetv1.ClaimMapping_SOURCE_ORG_NAME:           app.FromOrgName,
	signetv1.ClaimMapping_SOURCE_ORG_PRIMARY_DOMAIN: app.FromPrimaryDomain,
	signetv1.ClaimMapping_SOURCE_CONSTANT:           app.FromConstant,
}

var claimShapes = enum[signetv1.ClaimMapping_Shape, app.ClaimShape]{
	signetv1.ClaimMapping_SHAPE_STRING:  app.AsString,
	signetv1.ClaimMapping_SHAPE_BOOLEAN: app.AsBoolean,
	signetv1.ClaimMapping_SHAPE_ARRAY:   app.AsArray,
	signetv1.ClaimMapping_SHAPE_JOINED:  app.AsJoined,
}

var claimTargets = enum[signetv1.ClaimMapping_Target, app.ClaimTarget]{
	signetv1.ClaimMapping_TARGET_ID_TOKEN:       app.InIDToken,
	signetv1.ClaimMapping_TARGET_ACCESS_TOKEN:   app.InAccessToken,
	signetv1.ClaimMapping_TARGET_USER_INFO:      app.InUserInfo,
	signetv1.ClaimMapping_TARGET_INTROSPECTION:  app.InIntrospection,
	signetv1.ClaimMapping_TARGET_SAML_ATTRIBUTE: app.InSAML,
}

// claimMappings are those that a request sends for an application.
func claimMappings(sent []*signetv1.ClaimMapping) (all []app.ClaimMapping) {
	for _, m := range sent {
		one := app.ClaimMapping{
			Source:     claimSourceNames.name(m.GetSource()),
			Key:        m.GetMetadataKey(),
			Constant:   m.GetConstant(),
			Claim:      m.GetClaim(),
			Member:     m.GetMember(),
			Shape:      claimShapes.name(m.GetShape()),
			Separator:  m.GetSeparator(),
			Prefix:     m.GetPrefix(),
			BeginsWith: m.GetBeginsWith(),
			Only:       m.GetOnly(),
		}
		for _, t := range m.GetTargets() {
			one.Targets = append(one.Targets, claimTargets.name(t))
		}
		all = append(all, one)
	}
	return all
}

// showClaimMappings shows those of an application.
func showClaimMappings(kept []app.ClaimMapping) (all []*signetv1.ClaimMapping) {
	for _, m := range kept {
		one := &signetv1.ClaimMapping{
			Source:      claimSourceNames.number(m.Source),
			MetadataKey: m.Key,
			Constant:    m.Constant,
			Claim:       m.Claim,
			Member:      m.Member,
			Shape:       claimShapes.number(m.Shape),
			Separator:   m.Separator,
			Prefix:      m.Prefix,
			BeginsWith:  m.BeginsWith,
			Only:        m.Only,
		}
		for _, t := range m.Targets {
			one.Targets = append(one.Targets, claimTargets.number(t))
		}
		all = append(all, one)
	}
	return all
}

func claimMappingWarnings(leftOut []int) (all []*signetv1.ClaimMappingWarning) {
	for _, at := range leftOut {
		all = append(all, &signetv1.ClaimMappingWarning{Mapping: int32(at),
			Reason: signetv1.ClaimMappingWarning_REASON_LEFT_OUT_FOR_OTHERS,
			Message: "people of other organizations may use this application, and this claim is left out for them: the same value could be one of theirs. " +
				"For groups and roles let the prefix hold the identifier of the organization ({orgId}:), if they are to have it, too"})
	}
	return all
}
