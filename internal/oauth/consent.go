package oauth

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/claimset"
)

// Consents is what a person let applications have.
type Consents struct {
	Count int64              `json:"count,omitempty"` // of all that were ever given
	Apps  map[string]Consent `json:"apps,omitempty"`  // by the application's id
}

// Consent is what one application was let have.
type Consent struct {
	// which of the person's consents it is: one that was withdrawn and given again is another
	Since  int64    `json:"since"`
	Scopes []string `json:"scopes,omitempty"`
	Asked  bool     `json:"asked,omitempty"` // the person was asked; else the application needs no consent
	At     int64    `json:"at"`              // when it was given or widened
	// App.APIEpoch of the scopes of Signet's API: after another one they do not count
	API int64 `json:"api,omitempty"`
	// Seen is what it has besides, because it is the operator's own: nobody was asked about it, so it covers nothing.
	Seen []string `json:"seen,omitempty"`
}

// Kind of the objects of this package.
var Kind = event.Define(event.Schema[Consents]{
	Name: "consent", Table: "consents", Prefix: "con", Shape: 1,
	Facts: []event.Fact[Consents]{Given{}, Withdrawn{}, Erased{}},
})

// IDFor is the id of the object that holds a user's consents.
func IDFor(userID string) string {
	_, id, _ := strings.Cut(userID, "_")
	return "con_" + id
}

// Given records that a person let an application have these scopes from now on.
type Given struct {
	AppID  string   `json:"appId"`
	Scopes []string `json:"scopes,omitempty"`
	Asked  bool     `json:"asked,omitempty"`
	At     int64    `json:"at"`
	API    int64    `json:"api,omitempty"` // App.APIEpoch
	Seen   []string `json:"seen,omitempty"`
}

// EventType implements event.Fact.
func (Given) EventType() event.Type { return "consent.given.v1" }

// Since implements event.Gated: a node of the version before would forget what was seen.
func (e Given) Since() int {
	if len(e.Seen) > 0 {
		return 6
	}
	return 0
}

// Apply implements event.Fact.
func (e Given) Apply(c *Consents) {
	c.Count++
	since := c.Count
	if before, widened := c.Apps[e.AppID]; widened {
		since = before.Since
	}
	if c.Apps == nil {
		c.Apps = map[string]Consent{}
	}
	c.Apps[e.AppID] = Consent{Since: since, Scopes: e.Scopes, Asked: e.Asked, At: e.At, API: e.API, Seen: e.Seen}
}

// Withdrawn records that a person took back what an application was let have.
type Withdrawn struct {
	AppID string `json:"appId"`
}

// EventType implements event.Fact.
func (Withdrawn) EventType() event.Type { return "consent.withdrawn.v1" }

// Apply implements event.Fact.
func (e Withdrawn) Apply(c *Consents) { delete(c.Apps, e.AppID) }

// Erased records that the person was removed.
type Erased struct{}

// EventType implements event.Fact.
func (Erased) EventType() event.Type { return "consent.erased.v1" }

// Apply implements event.Fact.
func (Erased) Apply(c *Consents) { *c = Consents{} }

// Companion points at the consents of a user, for a command that calls Erase.
func Companion(userID string) event.Ref { return Kind.Ref(IDFor(userID)) }

// Erase forgets what a user who is being removed let applications have, inside a command that declared the Companion
// for writing.
func Erase(tx *event.Tx, userID string) error { return Kind.Erase(tx, IDFor(userID), Erased{}) }

// givenTo is what an application was let have; the zero value for nothing. c is nil for a person who never let any have
// something.
func givenTo(appID string, c *event.Object[Consents]) Consent {
	if c == nil {
		return Consent{}
	}
	return c.Data.Apps[appID]
}

// covers tells whether the person was asked about all of these scopes, with the application as it is.
func (c Consent) covers(scopes []string, apiEpoch int64) bool {
	return c.Asked && subset(scopes, c.counting(apiEpoch))
}

// counting are the scopes that still count.
func (c Consent) counting(apiEpoch int64) []string {
	if c.API == apiEpoch {
		return c.Scopes
	}
	return slices.DeleteFunc(slices.Clone(c.Scopes), access.IsAPIScope)
}

// outdated tells whether the application had scopes of Signet's API, wants such again, and was changed in between so
// that others have more of it. Then the person is asked even if the application needs no consent otherwise.
func (c Consent) outdated(scopes []string, apiEpoch int64) bool {
	return c.API != apiEpoch && (c.API != 0 || hasAPI(c.Scopes)) && hasAPI(scopes)
}

func hasAPI(scopes []string) bool { return slices.ContainsFunc(scopes, access.IsAPIScope) }

// seen is what the operator's own application has that nobody was asked about, from now on: the account page lists it.
func (c Consent) seen(scopes []string, asked bool) []string {
	all, agreed := slices.Clone(c.Seen), slices.Clone(c.Scopes)
	switch {
	case c.Asked && asked:
		agreed = append(agreed, scopes...)
	case c.Asked:
		all = append(all, scopes...)
	case asked:
		all, agreed = append(all, c.Scopes...), scopes
	}
	all = slices.DeleteFunc(all, func(s string) bool { return slices.Contains(agreed, s) })
	slices.Sort(all)
	return slices.Compact(all)
}

// give records that a user lets an application have scopes, where that is news, and tells which consent it is. The
// command declared the consents for writing and the user.
func give(tx *event.Tx, userID string, client *event.Object[app.App], scopes []string,
	asked bool) (since int64, err error) {
	c, err := Kind.Get(tx, IDFor(userID))
	if err != nil {
		return 0, err
	}
	before := givenTo(client.ID, c)
	had, epoch := before.Scopes, before.API
	if hasAPI(scopes) {
		had, epoch = before.counting(client.Data.APIEpoch), client.Data.APIEpoch
	}
	seen := before.Seen
	if before.Since != 0 && client.Data.FirstParty != nil {
		seen = before.seen(scopes, asked)
	}
	if before.Since != 0 && before.API == epoch && (before.Asked || !asked) && slices.Equal(seen, before.Seen) &&
		(before.Asked && !asked || subset(scopes, had)) {
		return before.Since, nil
	}
	all := slices.Clone(scopes)
	switch {
	case before.Asked && !asked:
		all, asked = slices.Clone(had), true // only the epoch is news
	case before.Asked == asked:
		all = append(all, had...)
	}
	slices.Sort(all)
	fact := Given{AppID: client.ID, Scopes: slices.Compact(all), Asked: asked, At: tx.Now(), API: epoch, Seen: seen}
	if c == nil {
		c, err = Kind.CreateBeside(tx, IDFor(userID), user.Kind.Ref(userID), fact)
	} else {
		err = c.Append(fact)
	}
	if err != nil {
		return 0, err
	}
	return c.Data.Apps[client.ID].Since, nil
}

// Access is what people are told that an application may have.
type Access struct {
	Scopes    []string // without those that stand for applications, in the order in which people are asked
	Audiences []string // the names of those applications; empty: one that is gone
}

// Told says what scopes and claims mean that people are asked about.
func (g *Grants) Told(ctx context.Context, asks []string) (told Access, err error) {
	for _, s := range claimset.SortedScopes(asks) {
		id := audienceOf(s)
		if id == "" {
			told.Scopes = append(told.Scopes, s)
			continue
		}
		a, err := app.Kind.Read(ctx, g.Store, id)
		if err != nil {
			return Access{}, err
		}
		name := ""
		if a != nil {
			name = a.Data.Name // none of one that was removed
		}
		told.Audiences = append(told.Audiences, name)
	}
	return told, nil
}

// Connected is an application that a person lets have something.
type Connected struct {
	AppID string
	Name  string // empty where the application is gone
	Access
	Since time.Time

	Publisher  string // the organization that it belongs to, where it is not the person's own
	FirstParty bool   // it is the operator's own
}

// Consents lists the applications that the caller lets have something, in the order of their ids.
func (g *Grants) Consents(ctx context.Context, caller *access.Caller) ([]Connected, error) {
	c, err := Kind.Read(ctx, g.Store, IDFor(caller.UserID))
	if err != nil || c == nil {
		return nil, err
	}
	var all []Connected
	for _, id := range slices.Sorted(maps.Keys(c.Data.Apps)) {
		given := c.Data.Apps[id]
		connected, scopes := Connected{AppID: id, Since: event.Time(given.At)}, slices.Concat(given.Scopes, given.Seen)
		a, err := app.Kind.Read(ctx, g.Store, id)
		if err != nil {
			return nil, err
		}
		if a != nil && a.Data.State != app.Removed {
			connected.Name, scopes = a.Data.Name, slices.Concat(given.counting(a.Data.APIEpoch), given.Seen)
			connected.FirstParty = a.Data.FirstParty != nil
			if connected.Publisher, err = g.Publisher(ctx, a, caller); err != nil {
				return nil, err
			}
		}
		if connected.Access, err = g.Told(ctx, scopes); err != nil {
			return nil, err
		}
		all = append(all, connected)
	}
	return all, nil
}

// Publisher is the name of the organization that an application belongs to; empty where it is the caller's own.
func (g *Grants) Publisher(ctx context.Context, a *event.Object[app.App], caller *access.Caller) (string, error) {
	if a.Org == caller.OrgID {
		return "", nil
	}
	o, err := org.Kind.Read(ctx, g.Store, a.Org)
	if err != nil || o == nil {
		return "", err
	}
	return o.Data.Name, nil
}

// WithdrawSince withdraws every consent that was given or widened since a moment, because the person who used the
// account then may not have been its owner. The command has declared the Companion for writing.
func WithdrawSince(tx *event.Tx, userID string, at int64) error {
	c, err := Kind.Get(tx, IDFor(userID))
	if err != nil || c == nil {
		return err
	}
	for _, appID := range slices.Sorted(maps.Keys(c.Data.Apps)) {
		if c.Data.Apps[appID].At < at {
			continue
		}
		tx.DropClient(userID, appID)
		if err := c.Append(Withdrawn{AppID: appID}); err != nil {
			return err
		}
	}
	return nil
}

// Withdraw takes back what an application was let have, and ends all that it was given: tokens of every kind, and codes
// on their way. Errors: ErrConsentNotFound.
func (g *Grants) Withdraw(ctx context.Context, caller *access.Caller, appID string) error {
	return g.Store.Do(ctx, event.Command{
		Origin: caller.Origin(),
		Write:  []event.Ref{Kind.Ref(IDFor(caller.UserID))},
		Decide: func(tx *event.Tx) error {
			c, err := Kind.Get(tx, IDFor(caller.UserID))
			if err != nil {
				return err
			}
			if c == nil || c.Data.Apps[appID].Since == 0 {
				return ErrConsentNotFound
			}
			tx.DropClient(caller.UserID, appID)
			return c.Append(Withdrawn{AppID: appID})
		},
	})
}
