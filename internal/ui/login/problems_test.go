package login

import (
	"errors"
	"reflect"
	"testing"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/signin/session"
	"github.com/signet-idm/signet/internal/transport/pages"
)

func TestFormsOfNewAccountsChooseTheirTextsByReason(t *testing.T) {
	const name = "human." + pages.FieldUserName
	reworded := func(field string, reason errs.ProblemReason) error {
		return errs.Invalid(errs.Violation{Field: field, Reason: reason, Message: "x"})
	}
	shown := func(field string, m pages.Message) []pages.Problem {
		return []pages.Problem{{Field: field, Message: m}}
	}
	human := func(userName, email string) error {
		n := user.NewHuman{UserName: userName, Email: email,
			Profile: user.Profile{FirstName: "Mara", LastName: "Lindqvist"}}
		return n.Violations("human.").Err()
	}
	for _, c := range []struct {
		name string
		err  error
		want []pages.Problem
	}{
		{"no user name", human("", "mara@a.test"), shown(pages.FieldUserName, pages.Required())},
		{"no address", human("mara", ""), shown(pages.FieldEmail, pages.Required())},
		{"a wrong address", human("mara", "mara"), shown(pages.FieldEmail, pages.NotAnEmail())},
		{"a user name that is not UTF-8", human("\xff", "mara@a.test"), shown(pages.FieldUserName, pages.NotValid())},
		{"the address of somebody else", errs.Wrong(name, user.ChosenName("bo@a.test", "mara@a.test", true)),
			shown(pages.FieldUserName, pages.UserNameIsAddress())},
		{"other words for an address", reworded(name, user.NameIsAddress),
			shown(pages.FieldUserName, pages.UserNameIsAddress())},
		{"other words for empty", reworded(name, syntax.IsEmpty), shown(pages.FieldUserName, pages.Required())},
		{"the same words without a reason", errs.Wrong(name, errs.Plain(syntax.Empty.Message)),
			shown(pages.FieldUserName, pages.NotValid())},
		{"terms", reworded(user.TermsField, syntax.IsEmpty), shown(pages.FieldTerms, pages.TermsRequired())},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := newAccountProblems(c.err)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v is shown as %+v, %v; want %+v", c.err, got, err, c.want)
			}
		})
	}
	if got, err := newAccountProblems(reworded("elsewhere", syntax.IsEmpty)); got != nil || err == nil {
		t.Errorf("a field that the form does not have is shown as %+v, %v", got, err)
	}
}

func TestFormsOfPasswordsChooseTheirTextsByReason(t *testing.T) {
	wrong := func(field string, reason errs.ProblemReason, message string) error {
		return errs.Invalid(errs.Violation{Field: field, Reason: reason, Message: message})
	}
	for _, c := range []struct {
		name string
		err  error
		want pages.Problem
	}{
		{"the same password again", wrong(pages.FieldNewPassword, session.UnchangedPassword, "x"),
			pages.Problem{Field: pages.FieldNewPassword, Message: pages.PasswordUnchanged()}},
		{"a password that the policy refuses", wrong(pages.FieldNewPassword, "", "is too common"),
			pages.Problem{Field: pages.FieldNewPassword, Message: pages.NotValid()}},
		{"a wrong current password", wrong(pages.FieldCurrentPassword, "", "is not your current password"),
			pages.Problem{Field: pages.FieldCurrentPassword, Message: pages.WrongCurrentPassword()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := PasswordProblems(c.err)
			if err != nil || !reflect.DeepEqual(got, []pages.Problem{c.want}) {
				t.Errorf("%v is shown as %+v, %v; want %+v", c.err, got, err, c.want)
			}
		})
	}
	if got, err := PasswordProblems(errors.New("disk on fire")); got != nil || err == nil {
		t.Errorf("a bug is shown as %+v, %v", got, err)
	}
}
