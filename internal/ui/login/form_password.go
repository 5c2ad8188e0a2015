package login

import (
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// PasswordRules tells people what the policy asks of a new password.
func PasswordRules(s policy.Settings) pages.PasswordRules {
	rules := pages.PasswordRules{NotCommon: s.CommonPasswordsRefused}
	if s.PasswordMinLength > 1 {
		rules.Least = int(s.PasswordMinLength)
	}
	return rules
}

// NewPassword reads the two fields in which a new password is typed, and tells what is wrong with it.
func NewPassword(r *http.Request, rules policy.Settings) (string, []pages.Problem) {
	chosen, repeated := r.PostFormValue(pages.FieldNewPassword), r.PostFormValue(pages.FieldRepeatPassword)
	wrong := func(field string, m pages.Message) (string, []pages.Problem) {
		return "", []pages.Problem{{Field: field, Message: m}}
	}
	switch {
	case chosen == "":
		return wrong(pages.FieldNewPassword, pages.Required())
	case !utf8.ValidString(chosen):
		return wrong(pages.FieldNewPassword, pages.NotValid())
	case utf8.RuneCountInString(chosen) > syntax.MaxPassword:
		return wrong(pages.FieldNewPassword, pages.TooLong(syntax.MaxPassword))
	case int64(utf8.RuneCountInString(chosen)) < rules.PasswordMinLength:
		return wrong(pages.FieldNewPassword, pages.PasswordTooShort(int(rules.PasswordMinLength)))
	case rules.CommonPasswordsRefused && policy.Common(chosen):
		return wrong(pages.FieldNewPassword, pages.PasswordTooCommon())
	case repeated != chosen:
		return wrong(pages.FieldRepeatPassword, pages.PasswordsDiffer())
	}
	return chosen, nil
}

// ChangedPassword reads the form in which people change their own password. current tells whether it asks for the old
// one.
func ChangedPassword(r *http.Request, rules policy.Settings, current bool) (session.ChangePassword, []pages.Problem) {
	change := session.ChangePassword{Current: r.PostFormValue(pages.FieldCurrentPassword),
		EndTokens: r.PostFormValue(pages.FieldEndTokens) != ""}
	var problems []pages.Problem
	change.New, problems = NewPassword(r, rules)
	switch {
	case !current:
		change.Current = ""
	case change.Current == "":
		problems = append([]pages.Problem{{Field: pages.FieldCurrentPassword, Message: pages.Required()}}, problems...)
	case problems == nil && change.New == change.Current:
		problems = []pages.Problem{{Field: pages.FieldNewPassword, Message: pages.PasswordUnchanged()}}
	}
	return change, problems
}

// PasswordProblems says what kept a password from being changed. Errors that no form can show are given back.
func PasswordProblems(err error) ([]pages.Problem, error) {
	if e, ours := errors.AsType[*errs.Error](err); ours && e.Kind == errs.InvalidArgument {
		for _, v := range e.Fields {
			if v.Field == pages.FieldNewPassword && v.Reason == session.UnchangedPassword {
				return []pages.Problem{{Field: v.Field, Message: pages.PasswordUnchanged()}}, nil
			}
			if v.Field == pages.FieldNewPassword { // the policy has just become stricter
				return []pages.Problem{{Field: pages.FieldNewPassword, Message: pages.NotValid()}}, nil
			}
		}
	}
	return Problem(pages.FieldCurrentPassword, pages.WrongCurrentPassword(), err)
}
