package oidc

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth"
)

// stalledStore answers nothing until it is asked to stop, as applications may.
type stalledStore struct{ event.Store }

func (stalledStore) Record(ctx context.Context, _ event.Ref) (*event.Record, error) {
	<-ctx.Done()
	return nil, errors.New("too late")
}

func TestAnOrganizationWhoseApplicationsStallLeavesOthersRoom(t *testing.T) {
	b := &BackChannel{Provider: &Provider{grants: &oauth.Grants{Store: stalledStore{}}}}
	defer b.Stop()
	begun := 0
	for i := range 2 * maxOnWay {
		if done, _ := b.begin(message{"usr_a", "ses_a", fmt.Sprint("app_", i)}, "org_a"); done != nil {
			begun++
		}
	}
	if begun != maxOnWay/2 {
		t.Errorf("%d are on their way to the applications of one organization", begun)
	}
	if done, worth := b.begin(message{"usr_b", "ses_b", "app_b"}, "org_b"); done == nil || !worth {
		t.Error("there is no room for another organization")
	}
}
