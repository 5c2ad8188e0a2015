package oauth

import (
	"context"
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
	"github.com/signet-idm/signet/internal/signin/session"
)

const deviceInterval = 5 * time.Second

var errUserCode = errs.New(errs.NotFound, UserCodeNotFound,
	"there is no device with this code, or the code has expired: check the code on the device")

// device is a device on its way to tokens.
type device struct {
	Client   string   `json:"client"`
	Scopes   []string `json:"scopes,omitempty"`
	Told     []string `json:"told,omitempty"` // as in Request
	Org      string   `json:"org,omitempty"`
	Expires  int64    `json:"expires"`
	Interval int64    `json:"interval"`        // seconds between questions
	Asked    int64    `json:"asked,omitempty"` // when it asked last
	Refused  bool     `json:"refused,omitempty"`
	Approved *terms   `json:"approved,omitempty"`
}

var (
	devices   = event.Flow[device]{Prefix: "device"}
	userCodes = event.Flow[string]{Prefix: "user_code", Life: deviceLife} // each names its device
)

// userCodeIDs are those under which it is kept which device shows a code. A code is so short that its digest could be found by
// trying all: so it is a MAC. Nodes of the version before know only the digest, which is written while one of them
// runs.
func (g *Grants) userCodeIDs(code string) (id, before string) {
	return hex.EncodeToString(g.Master.MAC("user code of a device", []byte(code))), secret.Digest(code)
}

// Device is what a device is told.
type Device struct {
	DeviceCode string // secret
	UserCode   string // as it is shown: BCDF-GHJK
	Life       time.Duration
	Interval   time.Duration
}

// BeginDevice starts the way of a device. Errors: ErrUnauthorizedClient; ErrInvalidScope; ResourceExhausted where too
// much was begun from the network.
func (g *Grants) BeginDevice(ctx context.Context, client *Client, asked []string) (*Device, error) {
	if err := client.may(app.DeviceCode); err != nil {
		return nil, err
	}
	if err := g.strangers(ctx); err != nil {
		return nil, err
	}
	if len(asked) > maxScopes {
		return nil, ErrInvalidScope
	}
	scopes := appScopes(&client.App.Data, asked)
	bound, err := g.boundTo(ctx, client.App, scopes)
	if err != nil {
		return nil, err
	}
	if _, scopes, err = g.meantFor(ctx, client.ID(), client.App.Org, scopes); err != nil { // as in Begin
		return nil, err
	}
	text, hash := secret.NewToken(secret.Code)
	d := &device{Client: client.ID(), Scopes: scopes, Told: claimset.RoleClaimsOf(&client.App.Data),
		Org: bound, Interval: int64(deviceInterval / time.Second)}
	const tries = 5
	for range tries {
		code := NewUserCode()
		now, before := g.userCodeIDs(code)
		taken := false
		err := g.Store.Do(ctx, event.Command{
			Origin: event.Origin{Actor: event.System},
			Rows:   []event.RowKey{userCodes.Key(now), userCodes.Key(before)},
			Decide: func(tx *event.Tx) error {
				for _, id := range []string{now, before} {
					found, err := userCodes.Get(tx, id)
					if taken = found != nil; err != nil || taken {
						return err
					}
				}
				id, digest := now, hex.EncodeToString(hash)
				if !tx.Every(event.SealedRows) {
					id = before
				}
				d.Expires = tx.Now() + deviceLife.Microseconds()
				userCodes.Put(tx, id, &digest)
				devices.PutUntil(tx, digest, d, d.Expires)
				return nil
			},
		})
		if err != nil {
			return nil, err
		}
		if !taken {
			return &Device{DeviceCode: text, UserCode: ShownUserCode(code), Life: deviceLife,
				Interval: deviceInterval}, nil
		}
	}
	return nil, errBusy
}

// PendingDevice is a device that waits for a person, with what the pages show of it.
type PendingDevice struct {
	UserCode string // as the device shows it
	Scopes   []string
	Told     []string // the claims about roles and groups that the application is told
	App      *event.Object[app.App]
	Org      *event.Object[org.Org] // the one that the sign-in is bound to; nil for any

	id     string       // of its row
	code   event.RowKey // which leads to it
	device *device
}

// Asks are the scopes and claims that people are asked about; not nil where there are none.
func (p *PendingDevice) Asks() []string { return append(append([]string{}, p.Scopes...), p.Told...) }

// DeviceByUserCode finds the device that shows a code. It slows down guessing. Errors: NotFound (USER_CODE_NOT_FOUND);
// ResourceExhausted (USER_CODE_THROTTLED).
func (g *Grants) DeviceByUserCode(ctx context.Context, peer netip.Addr, typed string) (*PendingDevice, error) {
	guesses := UserCodeGuesses{Store: g.Store, Master: g.Master}
	if err := guesses.Count(ctx, peer); err != nil {
		return nil, err
	}
	p, err := g.deviceBy(ctx, CanonicalUserCode(typed))
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errUserCode
	}
	return p, guesses.TakeBack(ctx, peer)
}

func (g *Grants) deviceBy(ctx context.Context, code string) (*PendingDevice, error) {
	if len(code) != UserCodeLength {
		return nil, nil
	}
	id, before := g.userCodeIDs(code)
	digest, err := userCodes.Read(ctx, g.Store, id)
	if err == nil && digest == nil {
		id = before
		digest, err = userCodes.Read(ctx, g.Store, id)
	}
	if err != nil || digest == nil {
		return nil, err
	}
	p := &PendingDevice{UserCode: ShownUserCode(code), id: *digest, code: userCodes.Key(id)}
	if p.device, err = devices.Read(ctx, g.Store, p.id); err != nil || p.device == nil || p.device.answered() {
		return nil, err
	}
	p.Scopes, p.Told = p.device.Scopes, p.device.Told
	if p.App, err = g.active(ctx, p.device.Client); err != nil || p.App == nil {
		return nil, err
	}
	if p.device.Org != "" {
		p.Org, err = org.Kind.Read(ctx, g.Store, p.device.Org)
	}
	return p, err
}

func (d *device) answered() bool { return d.Refused || d.Approved != nil }

// ApproveDevice lets the application on a device have the scopes that the person of a session agreed to. It works once.
// Errors: NotFound (USER_CODE_NOT_FOUND), and those of Approve.
func (g *Grants) ApproveDevice(ctx context.Context, p *PendingDevice, bearer *session.Bearer,
	consented []string) error {
	if consented == nil {
		return ErrConsentRequired
	}
	a := agreement{client: p.device.Client, scopes: p.device.Scopes, told: p.device.Told, org: p.device.Org,
		asked: true, consented: consented}
	return g.agree(ctx, bearer, a, []event.RowKey{devices.Key(p.id)}, func(tx *event.Tx, t terms) error {
		return p.answer(tx, func(d *device) { d.Approved = &t })
	})
}

// RefuseDevice tells the application on a device that the person does not want it. Errors: NotFound
// (USER_CODE_NOT_FOUND).
func (g *Grants) RefuseDevice(ctx context.Context, p *PendingDevice) error {
	return g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{devices.Key(p.id)},
		Decide: func(tx *event.Tx) error {
			return p.answer(tx, func(d *device) { d.Refused = true })
		},
	})
}

// answer changes a device that nobody has answered for yet. The user code is used up.
func (p *PendingDevice) answer(tx *event.Tx, change func(*device)) error {
	d, err := devices.Get(tx, p.id)
	if err != nil {
		return err
	}
	if d == nil || d.answered() {
		return errUserCode
	}
	change(d)
	devices.PutUntil(tx, p.id, d, d.Expires)
	tx.DropRow(p.code)
	return nil
}

// DeviceTokens gives a device its tokens, once somebody has approved. Errors: ErrAuthorizationPending until then;
// ErrSlowDown where it asks more often than it was told; ErrAccessDenied; ErrExpiredToken; ErrUnauthorizedClient.
func (g *Grants) DeviceTokens(ctx context.Context, client *Client, text string) (*Tokens, error) {
	if err := client.may(app.DeviceCode); err != nil {
		return nil, err
	}
	kind, hash, ok := secret.ParseToken(text)
	if !ok || kind != secret.Code {
		return nil, ErrExpiredToken
	}
	id := hex.EncodeToString(hash)
	d, err := devices.Read(ctx, g.Store, id)
	if err != nil {
		return nil, err
	}
	if d == nil || d.Client != client.ID() {
		return nil, ErrExpiredToken
	}
	if d.Approved == nil {
		return nil, g.poll(ctx, id)
	}
	return g.firstTokens(ctx, client, d.Approved, []event.RowKey{devices.Key(id)}, func(tx *event.Tx) (bool, error) {
		there, err := devices.Use(tx, id)
		if err != nil {
			return false, err
		}
		if there == nil {
			return false, ErrExpiredToken
		}
		return false, nil
	})
}

// poll notes that a device asked, and says what it is told.
func (g *Grants) poll(ctx context.Context, id string) error {
	var told error
	err := g.Store.Do(ctx, event.Command{
		Origin: event.Origin{Actor: event.System},
		Rows:   []event.RowKey{devices.Key(id)},
		Decide: func(tx *event.Tx) error {
			d, err := devices.Get(tx, id)
			if err != nil {
				return err
			}
			switch {
			case d == nil:
				told = ErrExpiredToken
				return nil
			case d.Refused:
				told = ErrAccessDenied
				tx.DropRow(devices.Key(id))
				return nil
			case d.Asked != 0 && tx.Now()-d.Asked < seconds(d.Interval).Microseconds():
				told = ErrSlowDown
				d.Interval += 5
			default:
				told = ErrAuthorizationPending // also where somebody approved this very moment: it comes back
			}
			d.Asked = tx.Now()
			devices.PutUntil(tx, id, d, d.Expires)
			return nil
		},
	})
	if err != nil {
		return err
	}
	return told
}
