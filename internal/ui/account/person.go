package account

import (
	"slices"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/org"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/transport/pages"
	"github.com/signet-idm/signet/internal/ui/login"
)

// seen is the sequence of the person that a form was shown with. One that does not say so has seen nothing.
func (v *browserRequest) seen() event.IfMatch {
	sequence, err := strconv.ParseUint(v.r.PostFormValue(pages.FieldSequence), 10, 64)
	if err != nil {
		sequence = 0 // which nobody is at
	}
	return event.IfMatch{Set: true, Sequence: sequence}
}

// profile shows and changes the own profile.
type profile struct{}

func (profile) show(v *browserRequest, with pages.Frame) error {
	return profile{}.view(v, with, v.me.Data.Human.Profile, v.me.Sequence)
}

func (profile) view(v *browserRequest, with pages.Frame, p user.Profile, sequence uint64) error {
	h := v.me.Data.Human
	view := pages.Profile{
		Account:           v.account(with),
		FirstName:         p.FirstName,
		LastName:          p.LastName,
		NickName:          p.NickName,
		DisplayName:       p.DisplayName,
		PreferredLanguage: p.PreferredLanguage,
		Gender:            string(p.Gender),
		Sequence:          sequence,
		Email:             h.Email.Address,
		EmailProven:       h.Email.Verified,
	}
	if h.Terms != nil {
		view.Terms, _ = pages.Outward(h.Terms.URI) // it was an address when it was accepted
		view.TermsAccepted = event.Time(h.Terms.At)
	}
	view.ProveEmail, view.Contact = v.Mail && view.Email != "" && !view.EmailProven, pages.To(pages.PathContact, nil)
	if h.Phone != nil {
		view.Phone, view.PhoneProven = h.Phone.Number, h.Phone.Verified
	}
	var err error
	if h.Has(user.Passkey) { // whose names it may show
		view.Signal, err = v.Sessions.Factors.Signal(v.r.Context(), v.Store, v.me)
	}
	if err != nil {
		return err
	}
	return v.render(view, with.Problems)
}

func (p profile) take(v *browserRequest) error {
	if v.r.PostFormValue(pages.FieldDo) == pages.DoResend {
		return v.proveEmail(p)
	}
	field := func(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }
	typed := user.Profile{
		FirstName:         field(pages.FieldFirstName),
		LastName:          field(pages.FieldLastName),
		NickName:          field(pages.FieldNickName),
		DisplayName:       field(pages.FieldDisplayName),
		PreferredLanguage: field(pages.FieldLanguage),
		Gender:            user.Gender(field(pages.FieldGender)),
	}
	var problems []pages.Problem
	judged := typed
	if !v.offered(typed.PreferredLanguage) {
		problems = append(problems, pages.Problem{Field: pages.FieldLanguage, Message: pages.NotValid()})
		judged.PreferredLanguage = ""
	}
	for _, wrong := range judged.Violations() { // the fields have the names of the API
		problems = append(problems, pages.Problem{Field: wrong.Field, Message: inWords(wrong)})
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

// inWords says what is wrong with a name. All names have the same bound; a language is never too long, because it is one
// that the page offers.
func inWords(wrong errs.Violation) pages.Message {
	switch wrong.Reason {
	case syntax.IsEmpty:
		return pages.Required()
	case syntax.IsTooLong:
		return pages.TooLong(syntax.MaxName)
	}
	return pages.NotValid()
}

// offered tells whether a language is one that the pages let people choose: those they speak, none, and the one that is
// set.
func (v *browserRequest) offered(tag string) bool {
	return tag == "" || tag == v.me.Data.Human.Profile.PreferredLanguage || slices.Contains(pages.Languages, tag)
}

// password changes the own password.
type password struct{}

func (password) show(v *browserRequest, with pages.Frame) error {
	rules, err := org.Settings(v.r.Context(), v.Store, v.me.Org)
	if err != nil {
		return err
	}
	return v.render(pages.OwnPassword{Account: v.account(with), Rules: login.PasswordRules(rules),
		EndTokens: v.r.PostFormValue(pages.FieldEndTokens) != ""}, with.Problems)
}

func (p password) take(v *browserRequest) error {
	rules, err := org.Settings(v.r.Context(), v.Store, v.me.Org)
	if err != nil {
		return err
	}
	change, problems := login.ChangedPassword(v.r, rules, true)
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
