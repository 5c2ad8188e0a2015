package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/gen/signet/v1/signetv1connect"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/webhook"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/life/model"
)

// Webhooks implements WebhookService.
type Webhooks struct{ Webhooks *webhook.Webhooks }

var _ signetv1connect.WebhookServiceHandler = Webhooks{}

var webhookStates = enum[signetv1.Webhook_State, webhook.State]{
	signetv1.Webhook_STATE_ACTIVE:   webhook.Active,
	signetv1.Webhook_STATE_INACTIVE: webhook.Inactive,
}

// AddWebhook creates a webhook in the context organization.
func (s Webhooks) AddWebhook(ctx context.Context, r *signetv1.AddWebhookRequest) (*signetv1.AddWebhookResponse, error) {
	created, err := s.Webhooks.Add(ctx, call.From(ctx).Permit, webhook.New{Name: r.GetName(), Settings: webhookOf(r)})
	if err != nil {
		return nil, err
	}
	return &signetv1.AddWebhookResponse{Details: complete(created.Details), WebhookId: created.ID,
		Secret: created.Secret}, nil
}

// GetWebhook reads a webhook of the context organization.
func (s Webhooks) GetWebhook(ctx context.Context, r *signetv1.GetWebhookRequest) (*signetv1.GetWebhookResponse, error) {
	o, err := s.Webhooks.Get(ctx, call.From(ctx).Permit, r.GetWebhookId())
	if err != nil {
		return nil, err
	}
	return &signetv1.GetWebhookResponse{Webhook: s.show(o)}, nil
}

// ListWebhooks reads a page of the webhooks of the context organization.
func (s Webhooks) ListWebhooks(ctx context.Context,
	r *signetv1.ListWebhooksRequest) (*signetv1.ListWebhooksResponse, error) {
	filter := webhook.Filter{Name: r.GetName(), State: webhookStates.name(r.GetState())}
	found, next, err := pageOf(ctx, s.Webhooks.Root, r,
		func(after event.Cursor, limit int) ([]*event.Object[webhook.Webhook], *event.Cursor, error) {
			return s.Webhooks.List(ctx, call.From(ctx).Permit, filter, after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListWebhooksResponse{NextPageToken: next}
	for _, o := range found {
		out.Webhooks = append(out.Webhooks, s.show(o))
	}
	return out, nil
}

// modifiableWebhook are the fields that an update mask can name.
var modifiableWebhook = maskOf(&signetv1.ModifyWebhookRequest{}, mask{NeverEmpty: []string{"name", "url"}})

// ModifyWebhook sets the named parts of a webhook of the context organization.
func (s Webhooks) ModifyWebhook(ctx context.Context,
	r *signetv1.ModifyWebhookRequest) (*signetv1.ModifyWebhookResponse, error) {
	info, fields := call.From(ctx), modifiableWebhook.Named(r)
	d, err := s.Webhooks.Modify(ctx, info.Permit, r.GetWebhookId(), info.IfMatch, webhook.Modification{
		Name:             masked(fields, "name", r.GetName()),
		URL:              masked(fields, "url", r.GetUrl()),
		Types:            masked(fields, "types", r.GetTypes()),
		AllOrganizations: masked(fields, "all_organizations", r.GetAllOrganizations()),
		OrganizationIDs:  masked(fields, "organization_ids", r.GetOrganizationIds()),
		PersonalData:     masked(fields, "personal_data", r.GetPersonalData()),
	})
	if err != nil {
		return nil, err
	}
	return &signetv1.ModifyWebhookResponse{Details: changed(d)}, nil
}

// DeactivateWebhook switches a webhook of the context organization off.
func (s Webhooks) DeactivateWebhook(ctx context.Context,
	r *signetv1.DeactivateWebhookRequest) (*signetv1.DeactivateWebhookResponse, error) {
	info := call.From(ctx)
	d, err := s.Webhooks.Deactivate(ctx, info.Permit, r.GetWebhookId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.DeactivateWebhookResponse{Details: changed(d)}, nil
}

// ReactivateWebhook switches a webhook of the context organization on again.
func (s Webhooks) ReactivateWebhook(ctx context.Context,
	r *signetv1.ReactivateWebhookRequest) (*signetv1.ReactivateWebhookResponse, error) {
	info := call.From(ctx)
	d, err := s.Webhooks.Reactivate(ctx, info.Permit, r.GetWebhookId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.ReactivateWebhookResponse{Details: changed(d)}, nil
}

// RemoveWebhook ends a webhook of the context organization.
func (s Webhooks) RemoveWebhook(ctx context.Context,
	r *signetv1.RemoveWebhookRequest) (*signetv1.RemoveWebhookResponse, error) {
	info := call.From(ctx)
	d, err := s.Webhooks.Remove(ctx, info.Permit, r.GetWebhookId(), info.IfMatch)
	if err != nil {
		return nil, err
	}
	return &signetv1.RemoveWebhookResponse{Details: changed(d)}, nil
}

// keepSecret is how long the secret before a new one signs when nobody says so.
const keepSecret = 24 * time.Hour

// RotateWebhookSecret makes a new secret for a webhook of the context organization.
func (s Webhooks) RotateWebhookSecret(ctx context.Context,
	r *signetv1.RotateWebhookSecretRequest) (*signetv1.RotateWebhookSecretResponse, error) {
	info, keep := call.From(ctx), keepSecret
	if r.KeepOldSeconds != nil {
		keep = time.Duration(r.GetKeepOldSeconds()) * time.Second
	}
	d, text, err := s.Webhooks.RotateSecret(ctx, info.Permit, r.GetWebhookId(), info.IfMatch, keep)
	if err != nil {
		return nil, err
	}
	return &signetv1.RotateWebhookSecretResponse{Details: changed(d), Secret: text}, nil
}

// TestWebhook sends a message to the receiver of a webhook of the context organization.
func (s Webhooks) TestWebhook(ctx context.Context,
	r *signetv1.TestWebhookRequest) (*signetv1.TestWebhookResponse, error) {
	out, err := s.Webhooks.Test(ctx, call.From(ctx).Permit, r.GetWebhookId())
	if err != nil {
		return nil, err
	}
	return &signetv1.TestWebhookResponse{Delivered: out.Problem == "", Status: int32(out.Status),
		DurationMillis: int32(out.Took.Milliseconds()), Problem: out.Problem}, nil
}

// ListWebhookFailures reads a page of what could not be sent.
func (s Webhooks) ListWebhookFailures(ctx context.Context,
	r *signetv1.ListWebhookFailuresRequest) (*signetv1.ListWebhookFailuresResponse, error) {
	found, next, err := pageOf(ctx, s.Webhooks.Root, r,
		func(after event.Cursor, limit int) ([]webhook.Failure, *event.Cursor, error) {
			return s.Webhooks.Failures(ctx, call.From(ctx).Permit, r.GetWebhookId(), r.GetRetrying(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListWebhookFailuresResponse{NextPageToken: next}
	for _, f := range found {
		shown := &signetv1.WebhookFailure{
			EventId:      f.EventID,
			Type:         string(f.Type),
			Tries:        int32(f.Tries),
			FirstFailure: timestamppb.New(f.First),
			LastFailure:  timestamppb.New(f.Last),
			Status:       int32(f.Status),
			Problem:      f.Problem,
		}
		if !f.Next.IsZero() {
			shown.NextTry = timestamppb.New(f.Next)
		}
		out.Failures = append(out.Failures, shown)
	}
	return out, nil
}

// ListWebhookHeldEvents reads a page of what waits.
func (s Webhooks) ListWebhookHeldEvents(ctx context.Context,
	r *signetv1.ListWebhookHeldEventsRequest) (*signetv1.ListWebhookHeldEventsResponse, error) {
	found, next, err := pageOf(ctx, s.Webhooks.Root, r,
		func(after event.Cursor, limit int) ([]webhook.HeldEvent, *event.Cursor, error) {
			return s.Webhooks.HeldEvents(ctx, call.From(ctx).Permit, r.GetWebhookId(), after, limit)
		})
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListWebhookHeldEventsResponse{NextPageToken: next}
	for _, h := range found {
		out.Events = append(out.Events,
			&signetv1.WebhookHeldEvent{EventId: h.EventID, Type: string(h.Type), Time: timestamppb.New(h.Time),
				Behind: h.Behind})
	}
	return out, nil
}

// ReplayWebhookEvents lets what has failed be tried again.
func (s Webhooks) ReplayWebhookEvents(ctx context.Context,
	r *signetv1.ReplayWebhookEventsRequest) (*signetv1.ReplayWebhookEventsResponse, error) {
	info := call.From(ctx)
	d, n, err := s.Webhooks.Replay(ctx, info.Permit, r.GetWebhookId(), info.IfMatch, r.GetEventId())
	if err != nil {
		return nil, err
	}
	return &signetv1.ReplayWebhookEventsResponse{Details: changed(d), Replayed: int32(n)}, nil
}

// SkipWebhookEvent lets what waits behind an event that has failed be sent without it.
func (s Webhooks) SkipWebhookEvent(ctx context.Context,
	r *signetv1.SkipWebhookEventRequest) (*signetv1.SkipWebhookEventResponse, error) {
	info := call.From(ctx)
	d, err := s.Webhooks.Skip(ctx, info.Permit, r.GetWebhookId(), info.IfMatch, r.GetEventId())
	if err != nil {
		return nil, err
	}
	return &signetv1.SkipWebhookEventResponse{Details: changed(d)}, nil
}

// ListWebhookDeliveries reads the last attempts.
func (s Webhooks) ListWebhookDeliveries(ctx context.Context,
	r *signetv1.ListWebhookDeliveriesRequest) (*signetv1.ListWebhookDeliveriesResponse, error) {
	found, err := s.Webhooks.Attempts(ctx, call.From(ctx).Permit, r.GetWebhookId())
	if err != nil {
		return nil, err
	}
	out := &signetv1.ListWebhookDeliveriesResponse{}
	for _, a := range found {
		out.Deliveries = append(out.Deliveries, &signetv1.WebhookDelivery{
			EventId:        a.EventID,
			Type:           string(a.Type),
			Time:           timestamppb.New(event.Time(a.Time)),
			Try:            int32(a.Try),
			Delivered:      a.Problem == "",
			Status:         int32(a.Status),
			DurationMillis: int32(a.Took / 1000),
			Problem:        a.Problem,
		})
	}
	return out, nil
}

func (s Webhooks) show(o *event.Object[webhook.Webhook]) *signetv1.Webhook {
	st := &o.Data
	out := &signetv1.Webhook{
		WebhookId:        o.ID,
		Details:          complete(o.Details()),
		State:            webhookStates.number(st.State),
		Name:             st.Name,
		Url:              st.Address,
		AddressInLog:     st.AddressInLog,
		Types:            st.Types,
		AllOrganizations: st.AllOrganizations,
		OrganizationIds:  st.OrganizationIDs,
		PersonalData:     st.PersonalData,
		Gone:             st.Gone,
	}
	if st.OldSecretUntil > event.Micros(s.Webhooks.Clock()) {
		out.OldSecretExpirationDate = timestamppb.New(event.Time(st.OldSecretUntil))
	}
	return out
}

// webhookSettings is a request that has the settings of a webhook.
type webhookSettings interface {
	GetUrl() string
	GetTypes() []string
	GetAllOrganizations() bool
	GetOrganizationIds() []string
	GetPersonalData() bool
}

func webhookOf(r webhookSettings) webhook.Settings {
	return webhook.Settings{URL: r.GetUrl(), Types: r.GetTypes(), AllOrganizations: r.GetAllOrganizations(),
		OrganizationIDs: r.GetOrganizationIds(), PersonalData: r.GetPersonalData()}
}

// eventTypes are all there are, and all of each kind.
var eventTypes = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, k := range model.Kinds {
		all[string(k.Name())+".*"] = true
		for _, t := range k.Types() {
			all[string(t)] = true
		}
	}
	return all
})

// checkWebhook lists what is wrong with the settings in a request; an address that is not sent is not looked at.
func checkWebhook(r webhookSettings) []errs.Violation {
	settings := webhookOf(r)
	wrong := settings.Violations()
	if settings.URL == "" {
		wrong = slices.DeleteFunc(wrong, func(v errs.Violation) bool { return v.Field == "url" })
	}
	for i, t := range settings.Types {
		field := fmt.Sprintf("types[%d]", i)
		if !eventTypes()[t] && !slices.ContainsFunc(wrong, func(v errs.Violation) bool { return v.Field == field }) {
			kind, _, _ := strings.Cut(t, ".")
			message := "is not an event type: there is no kind of object with this name"
			if eventTypes()[kind+".*"] {
				message = "is not an event type: use " + kind + ".* for all of this kind"
			}
			wrong = append(wrong, errs.Violation{Field: field, Message: message})
		}
	}
	return wrong
}
