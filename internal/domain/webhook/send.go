package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/journal"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
)

// SendTime is how long a receiver has for its answer. The outbound client is made with it.
const SendTime = 15 * time.Second

// maxRetryAfter is how long a receiver can put us off.
const maxRetryAfter = time.Hour

// TestType is the type of the message that Test sends. It is no event.
const TestType event.Type = "webhook.test.v1"

// message is what is sent.
type message struct {
	Type      event.Type `json:"type"`
	Timestamp time.Time  `json:"timestamp"`
	Data      any        `json:"data"`
}

// shown is an event as the API shows it.
type shown struct {
	EventID    string          `json:"eventId"`
	ObjectID   string          `json:"objectId"`
	ObjectType event.Kind      `json:"objectType"`
	Sequence   uint64          `json:"sequence,string"`
	OrgID      string          `json:"orgId"`
	Type       event.Type      `json:"type"`
	Actor      string          `json:"actor"`
	RequestID  string          `json:"requestId"`
	Time       time.Time       `json:"time"`
	Payload    json.RawMessage `json:"payload"`
	Personal   json.RawMessage `json:"personal,omitempty"`
	Erased     bool            `json:"erased"`
}

// bodyOf is the message about an event. It is the same whenever it is made, but for what has been erased since.
func bodyOf(e *journal.Entry) ([]byte, error) {
	return json.Marshal(message{
		Type:      e.Type,
		Timestamp: e.Time,
		Data: shown{EventID: e.ID, ObjectID: e.ObjectID, ObjectType: e.Kind, Sequence: e.Sequence,
			OrgID: e.OrgID, Type: e.Type, Actor: e.Actor, RequestID: e.RequestID, Time: e.Time, Payload: e.Payload,
			Personal: e.Personal, Erased: e.Erased},
	})
}

// Outcome is what came of one message.
type Outcome = notify.Outcome

// inUse is a webhook as messages need it.
type inUse struct {
	hook    *event.Object[Webhook]
	secrets secrets
}

// errNotInUse says that nothing is to be sent.
var errNotInUse = fmt.Errorf("the webhook is not in use: %w", notify.ErrNotNow)

// use reads a webhook that messages may go to now: an active one of an active organization. What is known of it is not
// read again where it has not changed.
func (w *Webhooks) use(ctx context.Context, id string, known *inUse) (*inUse, error) {
	o, err := Kind.Read(ctx, w.Store, id)
	if err != nil {
		return nil, err
	}
	if o == nil || o.Data.State != Active {
		return nil, errNotInUse
	}
	owner, err := org.Kind.Read(ctx, w.Store, o.Org)
	if err != nil {
		return nil, err
	}
	if owner == nil || owner.Data.State != org.Active {
		return nil, errNotInUse
	}
	if known != nil && known.hook.Sequence == o.Sequence {
		return known, nil
	}
	return w.opened(ctx, o)
}

func (w *Webhooks) opened(ctx context.Context, o *event.Object[Webhook]) (*inUse, error) {
	row, err := w.Store.Row(ctx, event.SecretOf(o.ID))
	if err != nil {
		return nil, err
	}
	s, err := secretsIn(w.Root, o.ID, row)
	if err == nil && s.URL == "" {
		s.URL, err = w.urlInLog(ctx, o.ID)
	}
	return &inUse{hook: o, secrets: s}, err
}

// urlInLog is where the messages of a webhook go for which no address was set since addresses are secrets: what an
// older version has recorded last.
func (w *Webhooks) urlInLog(ctx context.Context, id string) (url string, err error) {
	for e, err := range eventsOf(ctx, w.Store, id, 1) {
		if err != nil {
			return "", err
		}
		fact, err := Kind.Decode(e.Type, e.Payload, nil)
		if err != nil {
			return "", err
		}
		switch e := fact.(type) {
		case AddedV1:
			url = e.URL
		case SettingsChangedV1:
			event.Set(&url, e.URL)
		}
	}
	return url, nil
}

// deliver sends an event. The error is that of the store: then nothing was sent.
func (w *Webhooks) deliver(ctx context.Context, u *inUse, e *event.Event) (Outcome, error) {
	entry, err := journal.Show(ctx, w.Store, w.Root, e, u.hook.Data.PersonalData)
	if err != nil {
		return Outcome{}, err
	}
	body, err := bodyOf(entry)
	if err != nil {
		return Outcome{}, err
	}
	return w.send(ctx, u, entry.ID, body), nil
}

// Test sends a message of the type TestType at once, whether or not the webhook is switched on. Errors: ErrNotFound;
// those of fairqueue.Slots.
func (w *Webhooks) Test(ctx context.Context, permit access.Permit, id string) (Outcome, error) {
	o, err := w.get(ctx, permit, id, access.WebhookWrite)
	if err != nil {
		return Outcome{}, err
	}
	u, err := w.opened(ctx, o)
	if err != nil {
		return Outcome{}, err
	}
	now := w.Clock().UTC().Truncate(time.Microsecond)
	body, err := json.Marshal(message{Type: TestType, Timestamp: now, Data: struct {
		WebhookID string `json:"webhookId"`
	}{id}})
	if err != nil {
		return Outcome{}, err
	}
	var out Outcome
	err = w.Calls.Do(ctx, fairqueue.Claim{Org: o.Org}, func() error {
		out = w.send(ctx, u, event.NewID("msg"), body)
		return nil
	})
	return out, err
}

// send signs a message and sends it.
func (w *Webhooks) send(ctx context.Context, u *inUse, id string, body []byte) Outcome {
	now := w.Clock()
	header := map[string]string{
		"Content-Type":      "application/json",
		"Webhook-Id":        id,
		"Webhook-Timestamp": strconv.FormatInt(now.Unix(), 10),
		"Webhook-Signature": u.secrets.signatures(event.Micros(now), id, now.Unix(), body),
	}
	began := time.Now()
	answer, err := w.Outbound.PostWith(ctx, u.secrets.URL, header, body, 0)
	out := Outcome{Took: time.Since(began)}
	if err != nil {
		out.Problem = problemOf(err)
		return out
	}
	out.Status = answer.Status
	switch {
	case answer.Status >= 200 && answer.Status <= 299:
	case answer.Status >= 300 && answer.Status <= 399:
		out.Problem = fmt.Sprintf("the receiver answers with a redirect (status %d), which is not followed: set the final address", answer.Status)
	default:
		out.Problem = fmt.Sprintf("the receiver answers with status %d", answer.Status)
	}
	switch answer.Status {
	case 410:
		out.Gone = true
	case 429, 503:
		out.RetryAfter = retryAfter(answer.Header.Get("Retry-After"), now)
	}
	return out
}

// problemOf says in our words why there was no answer.
func problemOf(err error) string {
	switch outbound.TroubleOf(err) {
	case outbound.NotCalled:
		return "signet does not call this address: " + needed
	case outbound.UnknownName:
		return "the host name of the receiver was not found"
	case outbound.NoRoute:
		return "the network of the receiver cannot be reached"
	case outbound.Closed:
		return "the receiver refused the connection: nothing listens at this port"
	case outbound.Hungup:
		return "the receiver closed the connection without an answer"
	case outbound.Late:
		return "the receiver did not answer in time"
	case outbound.Untrusted:
		return "the certificate of the receiver is not trusted"
	case outbound.NoTLS:
		return "the receiver does not speak TLS at this port, or no version that signet accepts (1.2 and newer)"
	}
	return "the receiver does not answer with valid HTTP, or its host name is not valid"
}

// retryAfter reads a header of that name: seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", text); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
