package user

import (
	"encoding/json"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// A state that stays in memory is copied for every command: what a command does to its copy must not show elsewhere.
func TestFactsAppliedToACopyLeaveTheOriginalAlone(t *testing.T) {
	text, yes := "changed", true
	gender := Diverse
	facts := []event.Fact[User]{
		HumanAdded{Personal: HumanFacts{UserName: "x", Phone: "+1"}}, ServiceAdded{Personal: ServiceFacts{Name: "x"}},
		ProfileChanged{Personal: ProfileFacts{FirstName: &text, LastName: &text, NickName: &text, DisplayName: &text,
			PreferredLanguage: &text, Gender: &gender}},
		ServiceChanged{Personal: ServiceChanges{Name: &text, NameKey: &text, Description: &text}},
		UserNameChanged{Personal: UserNameFacts{UserName: &text, UserNameKey: &text}},
		EmailChanged{Verified: &yes, Personal: EmailFacts{Email: &text, EmailKey: &text}}, EmailVerified{},
		PhoneChanged{Verified: &yes, Personal: PhoneFacts{Phone: &text, PhoneNormal: &text}}, PhoneVerified{},
		PhoneRemoved{},
		HumanImported{Password: true, ChangeRequired: true, Personal: HumanFacts{UserName: "x", Phone: "+1"}},
		PasswordSet{ChangeRequired: true}, PasswordChanged{},
		MembershipSet{Scope: "org_1", Roles: []access.Role{access.OrgOwnerViewer}},
		Deactivated{}, Reactivated{}, WasLocked{}, Unlocked{}, WasRemoved{},
		EmailCodeRequested{}, EmailRestored{Personal: EmailFacts{Email: &text, EmailKey: &text}}, PasswordReset{},
		PasswordSetupSent{}, SessionsEnded{}, SecretSet{}, SecretRemoved{}, KeyAdded{KeyID: "pky_2"},
		KeyRemoved{KeyID: "pky_1"},
		WorkloadRuleAdded{WorkloadRule{ID: "wlr_2"}}, WorkloadRuleRemoved{RuleID: "wlr_1"},
		TOTPAdded{FactorID: "fac_2"}, PasskeyAdded{FactorID: "fac_2"},
		FactorRenamed{FactorID: "fac_1", Personal: FactorFacts{Name: text}}, FactorRemoved{FactorID: "fac_1"},
		RecoveryCodesMade{Count: 10}, RecoveryCodeUsed{},
		LinkAdded{LinkID: "lnk_2"}, LinkConfirmed{LinkID: "lnk_1", Confirmed: Confirmation{Version: 2}},
		LinkRemoved{LinkID: "lnk_1"},
		GroupJoined{Org: "org_1", Group: "grp_2", Roles: []access.Role{access.OrgUserManager}},
		GroupLeft{Org: "org_1", Group: "grp_1"},
		GroupRolesSet{Org: "org_1", Group: "grp_1", Roles: []access.Role{access.OrgUserManager}}, OrgLeft{Org: "org_1"},
		AppRolesSet{Place: "prj_1", Project: "prj_1", Org: "org_1", Roles: []AppRole{{Key: "b", Epoch: 2}}},
		CustomRoleChanged{Scope: "org_1", Role: access.Custom("role_1", []access.Permission{access.UserRead})},
		RolesAccepted{Scope: "org_1", Roles: []access.Role{access.OrgOwnerViewer}},
		TermsAccepted{URI: "https://example.org/terms"}, ThrottleCleared{},
		FactorRemovalRequested{FactorID: "fac_1", By: "usr_2", At: 1},
		MetadataSet{Personal: metadata.Change{Set: map[string]string{"b": "2"}, Remove: []string{"a"}}},
	}
	tried := map[event.Type]bool{}
	for _, f := range facts {
		tried[f.EventType()] = true
	}
	for _, one := range Kind.Types() {
		if !tried[one] {
			t.Errorf("%s is not tried: add it to the list above", one)
		}
	}
	if t.Failed() {
		return
	}
	for _, original := range []*User{
		{
			Standing: Standing{State: Active, Memberships: access.Memberships{"org_1": {access.OrgOwner}},
				Links: append(make([]string, 0, 4), "lnk_1", "lnk_3")},
			Human: &Human{Profile: Profile{FirstName: "a"}, Phone: &Phone{Number: "+2"},
				Factors: append(make([]Factor, 0, 4), Factor{ID: "fac_1"}, Factor{ID: "fac_3"}), RecoveryCodes: 3,
				Links: append(make([]Link, 0, 4), Link{ID: "lnk_1"}, Link{ID: "lnk_3"})},
			Groups: map[string][]InGroup{"org_1": append(make([]InGroup, 0, 4), InGroup{ID: "grp_1"},
				InGroup{ID: "grp_3"})},
			AppRoles: append(make([]AppRoles, 0, 4),
				AppRoles{Place: "prj_1", Org: "org_1", Roles: []AppRole{{Key: "a", Epoch: 1}}}),
			Metadata: map[string]string{"a": "1"},
			Accepted: map[string]Acceptance{"org_1": {Roles: []access.Role{access.OrgOwner}}},
		},
		{Standing: Standing{State: Active},
			Service: &Service{Name: "s", HasSecret: true,
				Keys:      append(make([]Key, 0, 4), Key{ID: "pky_1"}, Key{ID: "pky_3"}),
				Workloads: append(make([]WorkloadRule, 0, 4), WorkloadRule{ID: "wlr_1"}, WorkloadRule{ID: "wlr_3"})}},
	} {
		before, _ := json.Marshal(original)
		for _, f := range facts {
			c := original.clone()
			f.Apply(&c)
			if c.Human != nil {
				c.Human.Profile.FirstName, c.Human.Email.Address = "z", "z"
				if c.Human.Phone != nil {
					c.Human.Phone.Number = "z"
				}
			}
			if c.Service != nil {
				c.Service.Name = "z"
			}
			if after, _ := json.Marshal(original); string(after) != string(before) {
				t.Fatalf("%s shows in the original: %s", f.EventType(), after)
			}
		}
	}
}
