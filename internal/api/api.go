// Package api implements the RPCs, in files named after their service: it turns requests into calls to the objects'
// packages. The context (package call) says who the caller is, what they may do, and what the headers say. The package
// does not depend on the transport.
package api

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// Checker knows the rules of requests that the definition cannot express.
type Checker struct{ Clock func() time.Time }

// Check lists what is wrong with a request beyond the field rules of the definition.
func (c Checker) Check(req proto.Message, rules call.Rules) ([]errs.Violation, error) {
	if r, is := req.(*signetv1.ImportUsersRequest); is {
		return checkImport(r, rules)
	}
	return c.check(req), nil
}

func (c Checker) check(req proto.Message) []errs.Violation {
	switch r := req.(type) {
	case *signetv1.SetupOrganizationRequest:
		in := organizationOf(r)
		return in.Violations()
	case *signetv1.SetupInvitedOrganizationRequest:
		in := invitedOrganizationOf(r)
		return in.Violations()
	case *signetv1.SetInstallationPolicyRequest:
		return policyOf(r.GetPolicy()).InstallationViolations("policy.")
	case *signetv1.SetOrganizationPolicyRequest:
		return policyOf(r.GetPolicy()).RegisteringViolations("policy.")
	case *signetv1.PreviewOrganizationPolicyRequest:
		return policyOf(r.GetPolicy()).RegisteringViolations("policy.")
	case *signetv1.StartRegistrationRequest:
		return checkStartRegistration(r)
	case *signetv1.AddDomainRequest:
		return checkNewDomain(r)
	case *signetv1.AddApplicationRequest:
		return settingsOf(r).Violations(appTypes.name(r.GetType()))
	case *signetv1.ModifyApplicationRequest:
		return append(modifiableApp.Check(r), settingsOf(r).Violations("")...) // what goes with its type is known later
	case *signetv1.SetApplicationClaimMappingsRequest:
		return app.ClaimMappingViolations(claimMappings(r.GetMappings()))
	case *signetv1.SetApplicationAPIAccessRequest:
		return app.APIScopeViolations(r.GetScopes())
	case *signetv1.AddApplicationKeyRequest:
		return append(notADate(r), newKey(r).Violations(c.Clock())...)
	case *signetv1.AddWebhookRequest:
		return checkWebhook(r)
	case *signetv1.ModifyWebhookRequest:
		return append(modifiableWebhook.Check(r), checkWebhook(r)...)
	case *signetv1.SetOrganizationMemberRequest:
		return access.GivenViolations("", r.GetRoles())
	case *signetv1.SetGroupRolesRequest:
		return access.GivenViolations("", r.GetRoles())
	case *signetv1.SetInstallationMemberRequest:
		return access.GivenViolations(access.Installation, r.GetRoles())
	case *signetv1.AddHumanUserRequest:
		in := humanOf(r)
		return in.Violations("")
	case *signetv1.ListUsersRequest:
		// each beginning has an order of its own
		_, wrong := atMostOne("userName", r.GetUserName(), "name", r.GetName(), "email", r.GetEmail())
		return wrong
	case *signetv1.SearchUsersRequest:
		return user.SearchViolations(r.GetQuery())
	case *signetv1.SetUserEmailRequest:
		return notAnEmail(r.GetEmail())
	case *signetv1.SetMyEmailRequest:
		return notAnEmail(r.GetEmail())
	case *signetv1.SetUserPhoneRequest:
		return notAPhone(r.GetPhone())
	case *signetv1.SetMyPhoneRequest:
		return notAPhone(r.GetPhone())
	case *signetv1.ProveSecondFactorRequest:
		return oneProof(r, true)
	case *signetv1.ResetPasswordRequest:
		return oneProof(r, false)
	case *signetv1.CreateMyTokenRequest:
		return append(notADate(r), newToken(r).Violations(c.Clock())...)
	case *signetv1.CreateUserTokenRequest:
		return append(notADate(r), newToken(r).Violations(c.Clock())...)
	case *signetv1.ListEventsRequest:
		return append(wrongEventQuery(r), wrongEnd(r.GetFrom(), r.GetTo())...)
	case *signetv1.StreamEventsRequest:
		return wrongEventQuery(r)
	case *signetv1.AddServiceKeyRequest:
		return append(notADate(r), newKey(r).Violations(c.Clock())...)
	case *signetv1.AddServiceWorkloadRuleRequest:
		return workloadOf(r).Violations()
	}
	return slices.Concat(checkInvitation(req), checkProvider(req), checkProject(req), checkRole(req), checkMetadata(req))
}

// changed are the details of a manipulation: no creation date.
func changed(d event.Details) *signetv1.Details {
	return &signetv1.Details{Sequence: d.Sequence, ChangeDate: timestamppb.New(d.Changed), ResourceOwner: d.Org}
}

// complete are the details of a read or a creation.
func complete(d event.Details) *signetv1.Details {
	out := changed(d)
	out.CreationDate = timestamppb.New(d.Created)
	return out
}
