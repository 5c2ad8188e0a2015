package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
)

// RememberedDevices implements RememberedDeviceService.
type RememberedDevices struct {
	Sessions *session.Sessions
	Master   secret.MasterKey
}

var _ signetv1connect.RememberedDeviceServiceHandler = RememberedDevices{}

// ListMyRememberedDevices lists the caller's remembered devices.
func (s RememberedDevices) ListMyRememberedDevices(ctx context.Context,
	r *signetv1.ListMyRememberedDevicesRequest) (*signetv1.ListMyRememberedDevicesResponse, error) {
	devices, next, err := s.devices(ctx, session.Own(call.From(ctx).Caller), r)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListMyRememberedDevicesResponse{Devices: devices, NextPageToken: next}, nil
}

// EndMyRememberedDevice ends one of the caller's remembered devices.
func (s RememberedDevices) EndMyRememberedDevice(ctx context.Context,
	r *signetv1.EndMyRememberedDeviceRequest) (*signetv1.EndMyRememberedDeviceResponse, error) {
	if err := s.Sessions.EndDevice(ctx, session.Own(call.From(ctx).Caller), r.GetDeviceId()); err != nil {
		return nil, err
	}
	return &signetv1.EndMyRememberedDeviceResponse{}, nil
}

// ListUserRememberedDevices lists the remembered devices of a user of the context organization.
func (s RememberedDevices) ListUserRememberedDevices(ctx context.Context,
	r *signetv1.ListUserRememberedDevicesRequest) (*signetv1.ListUserRememberedDevicesResponse, error) {
	devices, next, err := s.devices(ctx, session.Of(call.From(ctx).Permit, r.GetUserId()), r)
	if err != nil {
		return nil, err
	}
	return &signetv1.ListUserRememberedDevicesResponse{Devices: devices, NextPageToken: next}, nil
}

// EndUserRememberedDevice ends a remembered device of a user of the context organization.
func (s RememberedDevices) EndUserRememberedDevice(ctx context.Context,
	r *signetv1.EndUserRememberedDeviceRequest) (*signetv1.EndUserRememberedDeviceResponse, error) {
	if err := s.Sessions.EndDevice(ctx, session.Of(call.From(ctx).Permit, r.GetUserId()), r.GetDeviceId()); err != nil {
		return nil, err
	}
	return &signetv1.EndUserRememberedDeviceResponse{}, nil
}

// devices renders a page of them.
func (s RememberedDevices) devices(ctx context.Context, whose session.Whose,
	r pageRequest) ([]*signetv1.RememberedDevice, string, error) {
	shown, next, err := pageOf(ctx, s.Master, r,
		func(after event.Cursor, limit int) ([]session.Shown, *event.Cursor, error) {
			return s.Sessions.List(ctx, whose, secret.Device, after, limit)
		})
	var out []*signetv1.RememberedDevice
	for _, d := range shown {
		out = append(out, &signetv1.RememberedDevice{DeviceId: d.ID, CreationDate: timestamppb.New(d.Created),
			ExpirationDate: timestamppb.New(d.Expires)})
	}
	return out, next, err
}
