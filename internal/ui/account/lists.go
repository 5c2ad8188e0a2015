package account

import (
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/secret"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

const maxListed = 200 // of the sessions or tokens: programs may open many

// listed gives the own sessions or tokens, the newest first.
func (v *browserRequest) listed(kind secret.TokenKind) ([]session.Shown, error) {
	var all []session.Shown
	const perRead = 500
	for after := (&event.Cursor{}); after != nil; {
		some, next, err := v.Sessions.List(v.r.Context(), session.Own(v.bearer.Caller), kind, *after, perRead)
		if err != nil {
			return nil, err
		}
		all, after = append(all, some...), next
	}
	slices.SortStableFunc(all, func(a, b session.Shown) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// sessions lists where the person is signed in, and signs out there.
type sessions struct{}

func (sessions) show(v *browserRequest, with pages.Frame) error {
	all, err := v.listed(secret.Session)
	if err != nil {
		return err
	}
	view := pages.Sessions{Account: v.account(with)}
	for _, s := range all {
		address, browser := s.OpenedFrom()
		view.Sessions = append(view.Sessions,
			pages.Session{ID: s.ID, Current: s.ID == v.bearer.Token.ID, Browser: browser, Address: address,
				Started: s.Created, Ends: s.Expires})
	}
	slices.SortStableFunc(view.Sessions, func(a, b pages.Session) int { return rank(a) - rank(b) })
	view.Sessions = view.Sessions[:min(len(view.Sessions), maxListed)]
	remembered, err := v.listed(secret.Device)
	if err != nil {
		return err
	}
	for _, d := range remembered {
		address, browser := d.OpenedFrom()
		view.Devices = append(view.Devices,
			pages.Session{ID: d.ID, Browser: browser, Address: address, Started: d.Created, Ends: d.Expires})
	}
	return v.render(view, with.Problems)
}

// rank puts the session that looks at the list at its top.
func rank(s pages.Session) int {
	if s.Current {
		return 0
	}
	return 1
}

func (s sessions) take(v *browserRequest) error {
	switch v.r.PostFormValue(pages.FieldDo) {
	case pages.DoEnd:
		if err := v.Sessions.End(v.r.Context(), session.Own(v.bearer.Caller),
			v.r.PostFormValue(pages.FieldID)); err != nil {
			return v.back(s, err)
		}
		return v.on(pages.PathSessions, sessionEnded)
	case pages.DoForget:
		if err := v.Sessions.EndDevice(v.r.Context(), session.Own(v.bearer.Caller),
			v.r.PostFormValue(pages.FieldID)); err != nil {
			return v.back(s, err)
		}
		return v.on(pages.PathSessions, deviceForgotten)
	case pages.DoEndOthers:
		if _, err := v.Sessions.EndOthers(v.r.Context(), v.bearer.Caller, event.IfMatch{}); err != nil {
			return v.back(s, err)
		}
		return v.on(pages.PathSessions, othersEnded)
	}
	return s.show(v, pages.Frame{})
}

// tokens lists the personal access tokens, makes and revokes them.
type tokens struct{}

// defaultDays is the life that is chosen unless the person chooses another.
const defaultDays = int(session.DefaultTokenLife / (24 * time.Hour))

// show fills in what was typed before a proof was asked for, which the address brings back.
func (t tokens) show(v *browserRequest, with pages.Frame) error {
	query := v.r.URL.Query()
	name, days := query.Get(pages.FieldTokenName), defaultDays
	if utf8.RuneCountInString(name) > syntax.MaxName {
		name = ""
	}
	if typed, err := strconv.Atoi(query.Get(pages.FieldTokenDays)); err == nil &&
		slices.Contains(pages.TokenDays, typed) {
		days = typed
	}
	return t.view(v, with, name, days)
}

func (tokens) view(v *browserRequest, with pages.Frame, name string, days int) error {
	all, err := v.listed(secret.PAT)
	if err != nil {
		return err
	}
	view := pages.Tokens{Account: v.account(with), Name: name, Days: days}
	for _, t := range all[:min(len(all), maxListed)] {
		view.Tokens = append(view.Tokens, pages.Token{ID: t.ID, Name: t.Name, Created: t.Created, Expires: t.Expires})
	}
	return v.render(view, with.Problems)
}

func (t tokens) take(v *browserRequest) error {
	switch v.r.PostFormValue(pages.FieldDo) {
	case pages.DoCreate:
		return t.create(v)
	case pages.DoRemove:
		if err := v.Sessions.Revoke(v.r.Context(), session.Own(v.bearer.Caller),
			v.r.PostFormValue(pages.FieldID)); err != nil {
			return v.back(t, err)
		}
		return v.on(pages.PathTokens, tokenRevoked)
	}
	return t.show(v, pages.Frame{})
}

func (t tokens) create(v *browserRequest) error {
	name := v.r.PostFormValue(pages.FieldTokenName)
	days, err := strconv.Atoi(v.r.PostFormValue(pages.FieldTokenDays))
	var problems []pages.Problem
	if utf8.RuneCountInString(name) > syntax.MaxName {
		problems = append(problems, pages.Problem{Field: pages.FieldTokenName, Message: pages.TooLong(syntax.MaxName)})
	}
	if err != nil || !slices.Contains(pages.TokenDays, days) {
		problems = append(problems, pages.Problem{Field: pages.FieldTokenDays, Message: pages.NotValid()})
	}
	if problems != nil {
		return t.view(v, pages.Frame{Problems: problems}, name, days)
	}
	expires := v.Clock().Add(time.Duration(days) * 24 * time.Hour)
	v.to = pages.To(pages.PathTokens,
		url.Values{pages.FieldTokenName: {name}, pages.FieldTokenDays: {strconv.Itoa(days)}}).String()
	made, err := v.Sessions.IssueOwn(v.r.Context(), v.bearer.Caller, session.NewToken{Name: name, Expires: &expires})
	if err != nil {
		return v.back(t, err)
	}
	return v.render(pages.NewToken{Account: v.account(pages.Frame{}), TokenName: name, Secret: made.Token,
		Expires: made.Expires}, nil)
}

// applications lists those that were given access, and takes it back.
type applications struct{}

func (applications) show(v *browserRequest, with pages.Frame) error {
	all, err := v.Grants.Consents(v.r.Context(), v.bearer.Caller)
	if err != nil {
		return err
	}
	view := pages.Applications{Account: v.account(with)}
	for _, c := range all {
		view.Applications = append(view.Applications,
			pages.Application{ID: c.AppID, Name: c.Name, Publisher: c.Publisher,
				Operator: c.FirstParty, Access: pages.Access(c.Access), Since: c.Since})
	}
	return v.render(view, with.Problems)
}

func (a applications) take(v *browserRequest) error {
	if v.r.PostFormValue(pages.FieldDo) != pages.DoRemove {
		return a.show(v, pages.Frame{})
	}
	if err := v.Grants.Withdraw(v.r.Context(), v.bearer.Caller, v.r.PostFormValue(pages.FieldID)); err != nil {
		return v.back(a, err)
	}
	return v.on(pages.PathApplications, appDisconnected)
}
