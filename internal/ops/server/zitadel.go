package server

import (
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/transport/rpc"
)

// NotServedHere is the reason of a refusal of what only ZITADEL's API has.
const NotServedHere errs.Reason = "NOT_SERVED_HERE"

// zitadelV1 are the names that the five core operations have in version 1 of ZITADEL's API. Their messages are equal on
// the wire.
var zitadelV1 = &rpc.Alias{
	Packages: []string{"zitadel.auth.v1", "zitadel.management.v1", "zitadel.admin.v1"},
	Prefixes: []string{"/auth/v1/", "/management/v1/", "/admin/v1/"},
	Header:   "X-Zitadel-Orgid",
	Methods: []rpc.AliasMethod{
		{Procedure: "zitadel.auth.v1.AuthService/UpdateMyProfile", Verb: "PUT", Path: "/auth/v1/users/me/profile",
			Operation: "signet.v1.UserService/UpdateMyProfile"},
		{
			Procedure: "zitadel.management.v1.ManagementService/UpdateOrgIDPJWTConfig",
			Verb:      "PUT",
			Path:      "/management/v1/idps/{idp_id}/jwt_config",
			Operation: "signet.v1.IdentityProviderService/UpdateJWTIdentityProvider",
		},
		{
			Procedure: "zitadel.management.v1.ManagementService/SetHumanPassword",
			Verb:      "POST",
			Path:      "/management/v1/users/{user_id}/password",
			Operation: "signet.v1.UserService/SetUserPassword",
		},
		{Procedure: "zitadel.admin.v1.AdminService/SetUpOrg", Verb: "POST", Path: "/admin/v1/orgs/_setup",
			Operation: "signet.v1.OrganizationService/SetupOrganization"},
		{Procedure: "zitadel.admin.v1.AdminService/UpdateIDP", Verb: "PUT", Path: "/admin/v1/idps/{idp_id}",
			Operation: "signet.v1.IdentityProviderService/UpdateIdentityProvider"},
	},
	Unserved: errs.New(errs.Unimplemented, NotServedHere,
		"of this API only UpdateMyProfile, UpdateOrgIDPJWTConfig, SetHumanPassword, SetUpOrg and UpdateIDP are served: use Signet's own API for the rest, see /openapi.json"),
}
