package api

import (
	"context"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/federated"
)

// Policies implements PolicyService.
type Policies struct {
	Store    event.Store
	Sessions federated.Sessions
	Mail     bool // this installation sends mail
}

var _ signetv1connect.PolicyServiceHandler = Policies{}

// GetInstallationPolicy reads the policy of the installation.
func (s Policies) GetInstallationPolicy(ctx context.Context,
	_ *signetv1.GetInstallationPolicyRequest) (*signetv1.GetInstallationPolicyResponse, error) {
	i, err := installation.Get(ctx, s.Store, call.From(ctx).Permit)
	if err != nil {
		return nil, err
	}
	return &signetv1.GetInstallationPolicyResponse{Details: complete(i.Details()), Policy: showPolicy(i.Data.Policy),
		Effective: showPolicy(policy.Effective(i.Data.Policy, policy.Policy{}).Policy), Defaults: policyDefaults()}, nil
}

// SetInstallationPolicy replaces it.
func (s Policies) SetInstallationPolicy(ctx context.Context,
	r *signetv1.SetInstallationPolicyRequest) (*signetv1.SetInstallationPolicyResponse, error) {
	info := call.From(ctx)
	d, err := installation.SetPolicy(ctx, s.Store, info.Permit, info.IfMatch, policyOf(r.GetPolicy()))
	if err != nil {
		return nil, err
	}
	return &signetv1.SetInstallationPolicyResponse{Details: changed(d)}, nil
}

// GetOrganizationPolicy reads the policy of the organization the path names.
func (s Policies) GetOrganizationPolicy(ctx context.Context,
	_ *signetv1.GetOrganizationPolicyRequest) (*signetv1.GetOrganizationPolicyResponse, error) {
	o, err := org.Get(ctx, s.Store, call.From(ctx).Permit)
	if err != nil {
		return nil, err
	}
	everywhere, err := installation.ReadPolicy(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	return &signetv1.GetOrganizationPolicyResponse{Details: complete(o.Details()), Policy: showPolicy(o.Data.Policy),
		Effective: showPolicy(policy.Effective(everywhere, o.Data.Policy).Policy), Defaults: policyDefaults()}, nil
}

// policyDefaults is what counts where nobody sets anything.
func policyDefaults() *signetv1.Policy {
	return showPolicy(policy.Effective(policy.Policy{}, policy.Policy{}).Policy)
}

// SetOrganizationPolicy replaces it.
func (s Policies) SetOrganizationPolicy(ctx context.Context,
	r *signetv1.SetOrganizationPolicyRequest) (*signetv1.SetOrganizationPolicyResponse, error) {
	info := call.From(ctx)
	d, noticed, err := s.Sessions.SetPolicy(ctx, info.Permit, info.IfMatch, policyOf(r.GetPolicy()))
	if err != nil {
		return nil, err
	}
	return &signetv1.SetOrganizationPolicyResponse{Details: changed(d), Warnings: s.warnings(r.GetPolicy(), noticed)}, nil
}

// PreviewOrganizationPolicy tells what SetOrganizationPolicy would, and changes nothing.
func (s Policies) PreviewOrganizationPolicy(ctx context.Context,
	r *signetv1.PreviewOrganizationPolicyRequest) (*signetv1.PreviewOrganizationPolicyResponse, error) {
	info := call.From(ctx)
	noticed, err := s.Sessions.TryPolicy(ctx, info.Permit, info.IfMatch, policyOf(r.GetPolicy()))
	if err != nil {
		return nil, err
	}
	return &signetv1.PreviewOrganizationPolicyResponse{Warnings: s.warnings(r.GetPolicy(), noticed),
		Incomplete: noticed.Incomplete}, nil
}

func (s Policies) warnings(p *signetv1.Policy, noticed federated.Noticed) (all []*signetv1.PolicyWarning) {
	people := func(reason signetv1.PolicyWarning_Reason, found federated.Concerned, message string) {
		if found.Users > 0 {
			all = append(all, &signetv1.PolicyWarning{Reason: reason, Users: int32(found.Users),
				UserNames: found.UserNames, Incomplete: noticed.Incomplete, Message: message})
		}
	}
	people(signetv1.PolicyWarning_REASON_NO_WAY_IN, noticed.LockedOut,
		"these people cannot sign in in an allowed way: let them link their accounts or add passkeys first, or allow another way")
	people(signetv1.PolicyWarning_REASON_NO_SECOND_FACTOR, noticed.FactorMissing,
		"these people have no second factor: they have to add one before anything else, unless they sign in through a provider whose second factor counts")
	if noticed.Unrouted {
		all = append(all, &signetv1.PolicyWarning{
			Reason:  signetv1.PolicyWarning_REASON_NO_ROUTED_DOMAIN,
			Message: "no domain of this organization is routed: nobody who types a login name is led to the identity provider. Prove a domain by DNS, or have an IAM_OWNER route one",
		})
	}
	if w := registrationWarning(p, s.Mail); w != nil {
		all = append(all, w)
	}
	return all
}

func policyOf(p *signetv1.Policy) policy.Policy {
	whose := policy.People
	if p.GetPasswordRulesForAdministrators() {
		whose = policy.Everybody
	}
	return policy.Policy{PasswordsOf: whose,
		SecondFactorRequired: p.GetSecondFactorRequired(), PasswordMinLength: int64(p.GetPasswordMinLength()),
		CommonPasswordsRefused: p.GetCommonPasswordsRefused(),
		NetworkAttempts:        int64(p.GetNetworkAttempts()), NetworkWaitSeconds: int64(p.GetNetworkWaitSeconds()),
		AccountAttempts: int64(p.GetAccountAttempts()), AccountWaitSeconds: int64(p.GetAccountWaitSeconds()),
		SessionSeconds: int64(p.GetSessionSeconds()), SessionIdleSeconds: int64(p.GetSessionIdleSeconds()),
		SignIn: policy.SignIn{
			SignInMethods:         waysOf(p.GetSignInMethods()),
			Providers:             p.GetIdpIds(),
			DefaultProvider:       p.GetDefaultIdpId(),
			SecondFactorProviders: p.GetSecondFactorIdpIds(),
			RegistersFromDefault:  p.GetRegistersFromDefault(),
		},
		Guests:      policy.Guests{GuestProofSeconds: int64(p.GetGuestProofSeconds())},
		Registering: registrationPolicy(p),
		Devices: policy.Devices{RememberDeviceSeconds: int64(p.GetRememberDeviceSeconds()),
			DevicesNotRemembered: p.GetDevicesNotRemembered()},
	}
}

func showPolicy(p policy.Policy) *signetv1.Policy {
	return showRegistrationPolicy(p.Registering, &signetv1.Policy{
		PasswordRulesForAdministrators: p.BindsAdministrators(),
		SecondFactorRequired:           p.SecondFactorRequired,
		PasswordMinLength:              int32(p.PasswordMinLength),
		CommonPasswordsRefused:         p.CommonPasswordsRefused,
		NetworkAttempts:                int32(p.NetworkAttempts),
		NetworkWaitSeconds:             int32(p.NetworkWaitSeconds),
		AccountAttempts:                int32(p.AccountAttempts),
		AccountWaitSeconds:             int32(p.AccountWaitSeconds),
		SessionSeconds:                 int32(p.SessionSeconds),
		SessionIdleSeconds:             int32(p.SessionIdleSeconds),
		SignInMethods:                  showWays(p.SignInMethods),
		IdpIds:                         p.Providers,
		DefaultIdpId:                   p.DefaultProvider,
		SecondFactorIdpIds:             p.SecondFactorProviders,
		RegistersFromDefault:           p.RegistersFromDefault,
		GuestProofSeconds:              int32(p.GuestProofSeconds),
		RememberDeviceSeconds:          int32(p.RememberDeviceSeconds),
		DevicesNotRemembered:           p.DevicesNotRemembered,
	})
}

var ways = enum[signetv1.SignInMethod, policy.Way]{
	signetv1.SignInMethod_SIGN_IN_METHOD_PASSWORD:          policy.WithPassword,
	signetv1.SignInMethod_SIGN_IN_METHOD_PASSKEY:           policy.WithPasskey,
	signetv1.SignInMethod_SIGN_IN_METHOD_IDENTITY_PROVIDER: policy.WithProvider,
}

func waysOf(methods []signetv1.SignInMethod) (allowed []policy.Way) {
	for _, m := range methods {
		allowed = append(allowed, ways[m])
	}
	return allowed
}

func showWays(allowed []policy.Way) (methods []signetv1.SignInMethod) {
	for _, w := range allowed {
		for m, way := range ways {
			if way == w {
				methods = append(methods, m)
			}
		}
	}
	return methods
}
