package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/signing"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
)

// StatusLog is what is asked of the store.
type StatusLog interface {
	event.Reader
	// Position is that of the last event.
	Position(ctx context.Context) (int64, error)
	// Sealed is how far the log is sealed.
	Sealed(ctx context.Context) (int64, error)
	// Lost is how many events are missing that the node has seen.
	Lost() int64
}

// Status implements StatusService.
type Status struct {
	Version, Engine string
	Started         time.Time
	Clock           func() time.Time
	Log             StatusLog
	Followers       []string // names of those that the node runs
	Webhooks        *webhook.Metrics
	Mail            bool
	Keys            *signing.Keys
}

var _ signetv1connect.StatusServiceHandler = Status{}

// GetStatus tells how the node and the installation are doing.
func (s Status) GetStatus(ctx context.Context, _ *signetv1.GetStatusRequest) (*signetv1.GetStatusResponse, error) {
	out := &signetv1.GetStatusResponse{
		Node: &signetv1.NodeStatus{Version: s.Version, Engine: s.Engine, StartTime: timestamppb.New(s.Started),
			Time: timestamppb.New(s.Clock())},
		Mail: &signetv1.MailStatus{Configured: s.Mail},
	}
	waiting := s.Webhooks.Waiting()
	out.Webhooks = &signetv1.WebhookStatus{InTrouble: int32(waiting.Webhooks), ObjectsRetrying: int32(waiting.Retrying),
		ObjectsFailed: int32(waiting.Failed)}
	// The followers and the sealer are read before the end of the log, so that the end is never behind them.
	sealed, err := s.Log.Sealed(ctx)
	if err != nil {
		return nil, err
	}
	var progress []*notify.Progress
	for _, name := range s.Followers {
		p, err := notify.Read(ctx, s.Log, name)
		if err != nil {
			return nil, err
		}
		progress = append(progress, p)
	}
	end, err := s.Log.Position(ctx)
	if err != nil {
		return nil, err
	}
	out.Log = &signetv1.LogStatus{Position: uint64(end), SealedPosition: uint64(sealed),
		LostEvents: uint64(s.Log.Lost())}
	for i, p := range progress {
		out.Followers = append(out.Followers, showFollower(s.Followers[i], p, end))
	}
	out.SigningKeys, err = s.signingKeys(ctx)
	return out, err
}

func showFollower(name string, p *notify.Progress, end int64) *signetv1.FollowerStatus {
	shown := &signetv1.FollowerStatus{Name: name, Position: uint64(p.Position), Lag: uint64(max(end-p.Position, 0)),
		Parked: int32(len(p.Parked))}
	next := int64(0)
	for _, parked := range p.Parked {
		if next == 0 || parked.Next < next {
			next = parked.Next
		}
	}
	if next != 0 {
		shown.NextRetry = timestamppb.New(event.Time(next))
	}
	if p.Failure != nil {
		shown.LastFailureTime, shown.LastFailure = timestamppb.New(event.Time(p.Failure.At)), p.Failure.Problem
	}
	return shown
}

func (s Status) signingKeys(ctx context.Context) (all []*signetv1.SigningKeyStatus, err error) {
	keys, _, err := s.Keys.List(ctx, call.From(ctx).Permit)
	if err != nil {
		return nil, err
	}
	now := event.Micros(s.Clock())
	for _, alg := range []signing.Algorithm{signing.ES256, signing.RS256} {
		newest := signing.Newest(keys, alg)
		if newest == nil {
			continue
		}
		shown := &signetv1.SigningKeyStatus{Algorithm: string(alg),
			NextRotation: timestamppb.New(event.Time(newest.SignsFrom).Add(signing.Period))}
		if signs := signing.Signs(keys, alg, now); signs != nil {
			shown.KeyId = signs.ID
		}
		if newest.SignsFrom > now {
			shown.NextSignsFrom = timestamppb.New(event.Time(newest.SignsFrom))
		}
		all = append(all, shown)
	}
	return all, nil
}
