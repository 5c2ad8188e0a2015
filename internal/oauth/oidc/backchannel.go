package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/eventlog/notify"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/signin/session"
)

const (
	// that the log waits for applications which answered in time when they were asked last
	patience  = 250 * time.Millisecond
	sendTime  = 15 * time.Second // for one logout token
	maxPerApp = 4                // logout tokens on their way to one of these, and to the others one
	// to all of these, of which one organization has half at most, and as many to all others
	maxOnWay   = 96
	formMedia  = "application/x-www-form-urlencoded"
	tokenField = "logout_token"
)

// BackChannel tells applications that sessions have ended (OpenID Connect Back-Channel Logout). It follows the log:
// what could not be told is tried again. An application that does not answer keeps nobody else waiting: it is told
// beside the log, and the log does not wait for it again before it has answered in time.
type BackChannel struct {
	Provider *Provider
	Outbound *outbound.Client

	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
	stop    context.CancelFunc // ends what is on its way
	within  context.Context
	onWay   map[message]chan struct{} // closed when it has been told, or has failed
	apps    map[string]*receiver
	load    map[bool]*fairqueue.Slots // that are on their way, to reliable applications and to others
}

// message is what is told: to whom, about which session.
type message struct{ userID, sessionID, client string }

// receiver is what is known of an application on this node.
type receiver struct {
	onWay  int
	failed error // the last time; nil: it understood, or has not been asked
	slow   bool  // the last time
}

func (r *receiver) reliable() bool { return r.failed == nil && !r.slow }

// ends are the facts that end sessions.
var ends = []event.Type{session.Ended{}.EventType(), user.SessionsEnded{}.EventType(), user.PasswordSet{}.EventType(),
	user.PasswordChanged{}.EventType(),
	user.PasswordReset{}.EventType(), user.EmailRestored{}.EventType(), user.Deactivated{}.EventType(),
	user.WasLocked{}.EventType(), user.WasRemoved{}.EventType()}

// FollowerName is the name of the follower, which never changes.
const FollowerName = "logout"

// Follower gives the follower that tells them.
func (b *BackChannel) Follower() notify.Follower {
	return notify.Follower{Name: FollowerName, Types: ends, Handle: b.handle, Forgetful: true}
}

// Stop ends what is on its way: it comes again after the next start. Nothing is sent afterwards.
func (b *BackChannel) Stop() {
	b.mu.Lock()
	if b.stopped = true; b.stop != nil {
		b.stop()
	}
	b.mu.Unlock()
	b.running.Wait()
}

var errNoAnswer = errors.New("no answer yet")

// handle tells everybody who is to be told about the sessions of a user that have ended. The event only says whose they
// are.
func (b *BackChannel) handle(ctx context.Context, e *event.Event) error {
	userID := e.ObjectID
	if e.Type == (session.Ended{}).EventType() {
		userID = session.UserOf(e.ObjectID)
	}
	left, err := b.Provider.grants.Visits().Left(ctx, userID)
	if err != nil || len(left) == 0 {
		return err
	}
	var waitFor []chan struct{}
	for _, v := range left {
		for _, client := range v.Clients {
			a, err := app.Kind.Read(ctx, b.Provider.grants.Store, client)
			if err != nil {
				return err
			}
			org := ""
			if a != nil {
				org = a.Org
			}
			done, worth := b.begin(message{userID, v.SessionID, client}, org)
			if worth {
				waitFor = append(waitFor, done)
			}
		}
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, done := range waitFor {
		select {
		case <-done:
		case <-within.Done():
		}
	}
	if left, err = b.Provider.grants.Visits().Left(ctx, userID); err != nil {
		return err
	}
	return b.problems(left)
}

// problems says why applications have not been told; nil where all have.
func (b *BackChannel) problems(left []oauth.Visited) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []error
	for _, v := range left {
		for _, client := range v.Clients {
			why := errNoAnswer
			if to := b.apps[client]; to != nil && to.failed != nil {
				why = to.failed
			}
			all = append(all, fmt.Errorf("telling %s: %w", client, why))
		}
	}
	return errors.Join(all[:min(len(all), 3)]...) // enough for a line of log
}

func newLoad() *fairqueue.Slots {
	return fairqueue.New(fairqueue.Bounds{Slots: maxOnWay, Reserve: true})
}

// begin sends a message of an organization's application beside the log, unless it is on its way already or too much
// is. worth tells whether to wait for it.
func (b *BackChannel) begin(m message, org string) (done chan struct{}, worth bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return nil, false
	}
	if b.stop == nil {
		b.within, b.stop = context.WithCancel(context.Background())
		b.apps, b.onWay, b.load = map[string]*receiver{}, map[message]chan struct{}{},
			map[bool]*fairqueue.Slots{true: newLoad(), false: newLoad()}
	}
	to := b.apps[m.client]
	if to == nil {
		to = &receiver{}
		b.apps[m.client] = to
	}
	reliable := to.reliable()
	if done, under := b.onWay[m]; under {
		return done, reliable
	}
	most := maxPerApp
	if !reliable {
		most = 1
	}
	claim := fairqueue.Claim{Org: org}
	if to.onWay >= most || !b.load[reliable].Try(claim) {
		return nil, false
	}
	to.onWay++
	done = make(chan struct{})
	b.onWay[m] = done
	b.running.Go(func() {
		ctx, cancel := context.WithTimeout(b.within, sendTime)
		defer cancel()
		began := time.Now()
		err := b.tell(ctx, m)
		b.mu.Lock()
		defer b.mu.Unlock()
		to.failed, to.slow = err, time.Since(began) > patience
		b.load[reliable].Leave(claim)
		if to.onWay--; to.onWay == 0 && to.reliable() {
			delete(b.apps, m.client)
		}
		delete(b.onWay, m)
		close(done)
	})
	return done, reliable
}

// tell sends a message, and notes that it was understood.
func (b *BackChannel) tell(ctx context.Context, m message) error {
	grants := b.Provider.grants
	a, err := b.listener(ctx, m.client)
	if err != nil {
		return err
	}
	if a != nil {
		token, err := b.Provider.LogoutToken(ctx, a, m.sessionID, m.userID)
		if err != nil {
			return err
		}
		answer, err := b.Outbound.Post(ctx, a.Data.BackChannelLogoutURI, formMedia,
			[]byte(url.Values{tokenField: {token}}.Encode()), 0)
		if err != nil {
			return err
		}
		if answer.Status < 200 || answer.Status > 299 {
			return fmt.Errorf("the application answered %d", answer.Status)
		}
	}
	return grants.Visits().Told(ctx, m.userID, m.sessionID, m.client)
}

// listener gives an application that wants to be told; nil where it does not, or is not in use.
func (b *BackChannel) listener(ctx context.Context, id string) (*event.Object[app.App], error) {
	r := b.Provider.grants.Store
	a, err := app.Kind.Read(ctx, r, id)
	if err != nil || a == nil || a.Data.State != app.Active || a.Data.BackChannelLogoutURI == "" {
		return nil, err
	}
	o, err := org.Kind.Read(ctx, r, a.Org)
	if err != nil || o == nil || o.Data.State != org.Active {
		return nil, err
	}
	return a, nil
}
