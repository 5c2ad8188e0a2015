package installation_test

import (
	"slices"
	"testing"

	"github.com/signet-idm/signet/internal/domain/installation"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestBeforeTheFirstStartThereIsNoInstallation(t *testing.T) {
	s := eventtest.New(t, installation.Kind)
	i, err := installation.Read(t.Context(), s)
	if i != nil || err != nil {
		t.Errorf("got %+v, %v", i, err)
	}
}

func TestTheInstallationKnowsItsDefaultOrganizationAndItsOwners(t *testing.T) {
	s := eventtest.New(t, installation.Kind)
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_a", nil, installation.Added{DefaultOrg: "org_a"},
		installation.OwnerAdded{UserID: "usr_a"}, installation.OwnerAdded{UserID: "usr_b"},
		installation.OwnerAdded{UserID: "usr_a"})
	i, err := installation.Read(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if i.Data.DefaultOrg != "org_a" || !slices.Equal(i.Data.Owners, []string{"usr_a", "usr_b"}) {
		t.Errorf("got %+v", i.Data)
	}
}

func TestAnOwnerWhoLeavesIsNoLongerOne(t *testing.T) {
	s := eventtest.New(t, installation.Kind)
	eventtest.Given(t, s, installation.Kind, installation.ID, "org_a", nil, installation.Added{DefaultOrg: "org_a"},
		installation.OwnerAdded{UserID: "usr_a"}, installation.OwnerAdded{UserID: "usr_b"},
		installation.MembersChanged{UserID: "usr_b"},
		installation.OwnerRemoved{UserID: "usr_a"}, installation.OwnerRemoved{UserID: "usr_x"})
	if i := eventtest.State(t, s, installation.Kind, installation.ID); !slices.Equal(i.Data.Owners, []string{"usr_b"}) {
		t.Errorf("got %+v", i.Data)
	}
}
