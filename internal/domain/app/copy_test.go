package app

import (
	"encoding/json"
	"testing"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/metadata"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

// A state that stays in memory is copied for whoever reads it: what they do to their copy must not show elsewhere.
func TestWhatHappensToACopyLeavesTheOriginalAlone(t *testing.T) {
	s := eventtest.New(t, Kind)
	eventtest.Given(t, s, Kind, "app_1", "org_1", nil, Added{
		Name: "Shop",
		Type: Web,
		Settings: Settings{GrantTypes: []GrantType{AuthorizationCode},
			RedirectURIs: []string{"https://a.test"}, PostLogoutURIs: []string{"https://b.test"}},
	},
		KeyAdded{KeyID: "key_1"}, APIAccessSet{Scopes: []string{"signet.self"}},
		AudienceApproved{ClientID: "app_2", ClientOrg: "org_2"}, OwnSignInSet{Allowed: true},
		FirstPartySet{Marked: true, By: "usr_1", EndsKeys: []string{"key_0"}},
		Vouched{By: "usr_1", Roles: access.Memberships{"org_1": {access.OrgOwner}}})
	eventtest.Given(t, s, Kind, "app_1", "", nil,
		MetadataSet{Change: metadata.Change{Set: map[string]string{"a": "1"}}},
		ClaimMappingsSet{Mappings: []ClaimMapping{{Targets: []ClaimTarget{InIDToken}, Only: []string{"a"}}}})
	record, err := s.Record(t.Context(), Kind.Ref("app_1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Kind.Prepare(record); err != nil {
		t.Fatal(err)
	}
	read := func() *event.Object[App] {
		a, err := Kind.Open(record)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	before, _ := json.Marshal(read().Data)
	a := &read().Data
	a.GrantTypes[0], a.RedirectURIs[0], a.PostLogoutURIs[0], a.Keys[0].ID, a.APIScopes[0], a.Approvals[0].Client, a.Name = "x", "x", "x", "x", "x", "x", "x"
	a.FirstParty.By = "x"
	a.Changer.UserID, a.Changer.Roles["org_1"][0], a.Changer.Roles["org_2"] = "x", "x", nil
	a.Metadata["a"] = "x"
	a.ClaimMappings[0].Targets[0], a.ClaimMappings[0].Only[0], a.ClaimMappings[0].Claim = "x", "x", "x"
	if after, _ := json.Marshal(read().Data); string(after) != string(before) {
		t.Errorf("it shows in the original: %s", after)
	}
}
