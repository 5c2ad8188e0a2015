package account

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/call"
	"github.com/signet-idm/signet/internal/event"
	"github.com/signet-idm/signet/internal/login"
	"github.com/signet-idm/signet/internal/mail"
	"github.com/signet-idm/signet/internal/org"
	"github.com/signet-idm/signet/internal/pages"
	"github.com/signet-idm/signet/internal/user"
)

// maxName is how many characters each of a person's names may have, as in the API.
const maxName = 200

// seen is the sequence of the person that a form was shown with. One that does not say so has seen nothing.
func (v *visit) seen() event.IfMatch {
	sequence, err := strconv.ParseUint(v.r.PostFormValue(pages.FieldSequence), 10, 64)
	if err != nil {
		sequence = 0 // which nobody is at
	}
	return event.IfMatch{Set: true, Sequence: sequence}
}

// profile shows and changes the own profile.
type profile struct{}

func (profile) show(v *visit, with pages.Frame) error {
	return profile{}.view(v, with, v.me.State.Human.Profile, v.me.Sequence)
}

func (profile) view(v *visit, with pages.Frame, p user.Profile, sequence uint64) error {
	h := v.me.State.Human
	view := pages.Profile{Account: v.account(with), FirstName: p.FirstName, LastName: p.LastName, NickName: p.NickName, DisplayName: p.DisplayName,
		PreferredLanguage: p.PreferredLanguage, Gender: string(p.Gender), Sequence: sequence, Email: h.Email.Address, EmailProven: h.Email.Verified}
	if view.Email != "" && !view.EmailProven {
		view.ProveEmail = pages.To(mail.VerifyPath, nil)
	}
	if h.Phone != nil {
		view.Phone, view.PhoneProven = h.Phone.Number, h.Phone.Verified
	}
	return v.render(view, with.Problems)
}

func (p profile) take(v *visit) error {
	field := func(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }
	typed := user.Profile{FirstName: field(pages.FieldFirstName), LastName: field(pages.FieldLastName), NickName: field(pages.FieldNickName),
		DisplayName: field(pages.FieldDisplayName), PreferredLanguage: field(pages.FieldLanguage), Gender: user.Gender(field(pages.FieldGender))}
	var problems []pages.Problem
	for _, name := range []struct {
		field, value string
		optional     bool
	}{
		{pages.FieldFirstName, typed.FirstName, false}, {pages.FieldLastName, typed.LastName, false},
		{pages.FieldDisplayName, typed.DisplayName, false}, {pages.FieldNickName, typed.NickName, true},
	} {
		switch {
		case name.value == "" && !name.optional:
			problems = append(problems, pages.Problem{Field: name.field, Message: pages.Required()})
		case utf8.RuneCountInString(name.value) > maxName:
			problems = append(problems, pages.Problem{Field: name.field, Message: pages.TooLong(maxName)})
		}
	}
	if !v.offered(typed.PreferredLanguage) {
		problems = append(problems, pages.Problem{Field: pages.FieldLanguage, Message: pages.NotValid()})
	}
	if !slices.Contains([]user.Gender{"", user.Female, user.Male, user.Diverse}, typed.Gender) {
		problems = append(problems, pages.Problem{Field: pages.FieldGender, Message: pages.NotValid()})
	}
	seen := v.seen()
	if problems != nil {
		return p.view(v, pages.Frame{Problems: problems}, typed, seen.Sequence)
	}
	if _, err := user.ReplaceProfile(v.r.Context(), v.Store, v.bearer.Caller, seen, typed); err != nil {
		return v.back(p, err)
	}
	return v.on(pages.PathAccount, profileSaved)
}

// offered tells whether a language is one that the pages let people choose: those they speak, none, and the one that is set.
func (v *visit) offered(tag string) bool {
	return tag == "" || tag == v.me.State.Human.Profile.PreferredLanguage || slices.Contains(pages.Languages, tag)
}

// language changes the language alone.
type language struct{}

func (language) show(v *visit, with pages.Frame) error {
	return v.render(pages.Language{Account: v.account(with), PreferredLanguage: v.me.State.Human.Profile.PreferredLanguage, Sequence: v.me.Sequence}, with.Problems)
}

func (l language) take(v *visit) error {
	p := v.me.State.Human.Profile
	chosen := v.r.PostFormValue(pages.FieldLanguage)
	if !v.offered(chosen) {
		return l.show(v, pages.Frame{Problems: []pages.Problem{{Message: pages.NotValid()}}})
	}
	p.PreferredLanguage = chosen
	if _, err := user.ReplaceProfile(v.r.Context(), v.Store, v.bearer.Caller, v.seen(), p); err != nil {
		return v.back(l, err)
	}
	return v.on(pages.PathLanguage, profileSaved)
}

// password changes the own password.
type password struct{}

func (password) show(v *visit, with pages.Frame) error {
	rules, err := org.Settings(v.r.Context(), v.Store, v.me.Org)
	if err != nil {
		return err
	}
	return v.render(pages.OwnPassword{Account: v.account(with), Rules: login.PasswordRules(rules), EndTokens: v.r.PostFormValue(pages.FieldEndTokens) != ""}, with.Problems)
}

func (p password) take(v *visit) error {
	rules, err := org.Settings(v.r.Context(), v.Store, v.me.Org)
	if err != nil {
		return err
	}
	change, problems := login.ChangedPassword(v.r, rules)
	if problems == nil {
		info := call.From(v.r.Context())
		change.Peer, change.UserAgent = info.Peer, info.UserAgent
		stepped, err := v.Sessions.ChangePasswordHere(v.r.Context(), v.bearer.Caller, change)
		if err == nil {
			if err := v.accounts.Enter(v.r.Context(), v.w, stepped.Token); err != nil {
				return err
			}
			return v.on(pages.PathPassword, passwordChanged)
		}
		if problems, err = login.PasswordProblems(err); err != nil {
			return err
		}
	}
	return p.show(v, pages.Frame{Problems: problems})
}
