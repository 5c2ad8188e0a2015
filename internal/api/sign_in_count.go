package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/signin/tally"
)

const usualCountedDays = 30

// SignInCounts implements SignInCountService.
type SignInCounts struct{ Tally *tally.Tally }

var _ signetv1connect.SignInCountServiceHandler = SignInCounts{}

var signInWays = map[tally.Way]signetv1.SignInCount_Way{
	tally.Password: signetv1.SignInCount_WAY_PASSWORD, tally.Passkey: signetv1.SignInCount_WAY_PASSKEY,
	tally.Provider: signetv1.SignInCount_WAY_PROVIDER,
}

// CountSignIns tells the numbers of the last days.
func (s SignInCounts) CountSignIns(ctx context.Context,
	r *signetv1.CountSignInsRequest) (*signetv1.CountSignInsResponse, error) {
	permit := call.From(ctx).Permit
	scope := permit.Org()
	if r.GetAllOrganizations() {
		if !permit.Holds(access.EventRead, access.Installation) {
			return nil, access.ErrDeniedInstallation
		}
		scope = access.Installation
	}
	days, err := s.Tally.Read(ctx, scope, cmp.Or(int(r.GetDays()), usualCountedDays))
	if err != nil {
		return nil, err
	}
	out := &signetv1.CountSignInsResponse{}
	for _, d := range days {
		shown := &signetv1.SignInDay{Date: d.Date.Format(time.DateOnly)}
		for way, c := range d.Day {
			shown.Counts = append(shown.Counts,
				&signetv1.SignInCount{Way: signInWays[way], Successes: uint64(c.Successes),
					Failures: uint64(c.Failures), Throttled: uint64(c.Throttled)})
		}
		slices.SortFunc(shown.Counts,
			func(a, b *signetv1.SignInCount) int { return cmp.Compare(a.GetWay(), b.GetWay()) })
		out.Days = append(out.Days, shown)
	}
	return out, nil
}
