package api

import (
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/eventlog/event/eventtest"
)

func TestDatesAreJudgedByTheClock(t *testing.T) {
	check := Checker{Clock: func() time.Time { return eventtest.Start }}
	const key = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
	for _, c := range []struct {
		name       string
		date       *timestamppb.Timestamp
		token, key bool // whether it is taken
	}{
		{"none", nil, true, true},
		{"in an hour", timestamppb.New(eventtest.Start.Add(time.Hour)), true, true},
		{"now", timestamppb.New(eventtest.Start), false, false},
		{"in 367 days", timestamppb.New(eventtest.Start.Add(367 * 24 * time.Hour)), false, true},
		{"the zero date", &timestamppb.Timestamp{}, false, false},
		{"the first year", timestamppb.New(time.Time{}), false, false},
		{"no date at all", &timestamppb.Timestamp{Seconds: math.MaxInt64}, false, false},
		{"nanoseconds below zero",
			&timestamppb.Timestamp{Seconds: eventtest.Start.Unix() + 3600, Nanos: -1}, false, false},
	} {
		for req, taken := range map[proto.Message]bool{
			&signetv1.CreateMyTokenRequest{ExpirationDate: c.date}:                 c.token,
			&signetv1.CreateUserTokenRequest{ExpirationDate: c.date}:               c.token,
			&signetv1.AddServiceKeyRequest{ExpirationDate: c.date, PublicKey: key}: c.key,
		} {
			var fields []string
			for _, v := range check.check(req) {
				fields = append(fields, v.Field)
			}
			if len(fields) == 0 != taken || !taken && slices.Compact(fields)[0] != "expirationDate" {
				t.Errorf("%s, %T: %q", c.name, req, fields)
			}
		}
	}
	if found := check.check(setupRequest(func(r *signetv1.SetupOrganizationRequest) {
		r.Org.Domain = "@"
	})); len(found) != 1 {
		t.Errorf("other requests are not checked: %v", found)
	}
	if found := check.check(&signetv1.AddServiceKeyRequest{PublicKey: "x"}); len(found) != 1 ||
		found[0].Field != "publicKey" {
		t.Errorf("a key that is none: %v", found)
	}
}
