package failure_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
	"github.com/signet-idm/signet/test/testdb"
	"github.com/signet-idm/signet/test/testkit"
)

// TestFailuresAreWrittenOnceAMinute: by all nodes together, however many there are.
func TestFailuresAreWrittenOnceAMinute(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		nodes := eventtest.NewNodes(db, failure.Kind)
		s := nodes.Open(t)
		recorders := []*failure.Recorder{failure.NewRecorder(s, nodes.Clock.Now),
			failure.NewRecorder(s, nodes.Clock.Now)}
		record := func(n int) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					testkit.Must(t, recorders[i%2].Record(t.Context(), failure.Refusal{Provider: "idp_1", Org: "org_a",
						Check: []string{failure.Nonce, failure.Issuer}[i/2%2], RequestID: "req"}))
				})
			}
			all.Wait()
		}
		for minute := 1; minute <= 3; minute++ {
			record(50)
			o, err := failure.Kind.Read(t.Context(), s, failure.IDFor("idp_1"))
			testkit.Must(t, err)
			if int(o.Sequence) != minute {
				t.Errorf("after %d minutes there are %d events", minute, o.Sequence)
			}
			nodes.Clock.Advance(time.Minute)
		}
	})
}

func TestAnEventTellsEightCausesOfAProviderApart(t *testing.T) {
	clock := testkit.NewClock(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	s := eventtest.New(t, failure.Kind)
	r := failure.NewRecorder(s, clock.Now)
	record := func(app, check string) {
		t.Helper()
		testkit.Must(t, r.Record(t.Context(), failure.Refusal{Provider: "idp_1", Org: "org_a", Application: app,
			Check: check, RequestID: "req"}))
	}
	record("", failure.Nonce)
	mark := s.Mark()
	for i := range 10 {
		record(fmt.Sprint("app_", i/2), []string{failure.Nonce, failure.Denied}[i%2])
	}
	s.Then(t, mark)
	record("", failure.LogoutPrefix+failure.Signature) // does not wait for the others
	facts := s.Since(t, mark)
	if len(facts) != 1 || !strings.Contains(facts[0].Payload, `"by":[{"check":"logout_signature","count":1}]`) {
		t.Errorf("recorded: %+v", facts)
	}
	record("app_0", failure.Nonce)
	s.Advance(time.Minute - 1)
	clock.Advance(time.Minute - 1)
	mark = s.Mark()
	testkit.Must(t, r.Say(t.Context()))
	s.Then(t, mark)
	s.Advance(1)
	clock.Advance(1)
	testkit.Must(t, r.Say(t.Context())) // nobody has to fail again for it
	testkit.Must(t, r.Say(t.Context()))
	var got failure.Failed
	facts = s.Since(t, mark)
	if len(facts) != 1 {
		t.Fatalf("recorded: %+v", facts)
	}
	testkit.Must(t, json.Unmarshal([]byte(facts[0].Payload), &got))
	if got.Check != failure.Nonce || got.Count != 11 || got.Others != 2 || len(got.By) != 8 ||
		got.By[0] != (failure.FailedAs{Application: "app_0", Check: failure.Nonce, Count: 2}) ||
		got.By[7] != (failure.FailedAs{Application: "app_3", Check: failure.Denied, Count: 1}) {
		t.Errorf("got %+v", got)
	}
	if o := eventtest.State(t, s, failure.Kind, failure.IDFor("idp_1")); o.Org != "org_a" || o.Data.Failed != 13 {
		t.Errorf("got %+v of %s", o.Data, o.Org)
	}
}
