// What all pages share on which somebody becomes a user.

package login

import (
	"errors"
	"slices"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/base/syntax"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/domain/policy"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/signin/federated"
	"github.com/signet-idm/signet/internal/transport/pages"
)

// shownTerms shows what an organization asks new people to accept.
func shownTerms(p policy.Policy, accepted string) pages.Terms {
	t := pages.Terms{Accepted: accepted != "" && accepted == p.TermsURI}
	t.Terms, _ = pages.Outward(p.TermsURI) // what is no address is not there
	t.Privacy, _ = pages.Outward(p.PrivacyURI)
	return t
}

// newAccountProblems says what kept an account from being made. Errors that no form can show are given back.
func newAccountProblems(err error) ([]pages.Problem, error) {
	e, ours := errors.AsType[*errs.Error](err)
	if !ours {
		return nil, err
	}
	if e.Reason == user.UserNameTaken {
		return []pages.Problem{{Field: pages.FieldUserName, Message: pages.UserNameTaken()}}, nil
	}
	if e.Kind != errs.InvalidArgument {
		return nil, err
	}
	var problems []pages.Problem
	for _, wrong := range e.Fields {
		field := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		m := pages.NotValid()
		switch {
		case field == user.TermsField:
			field, m = pages.FieldTerms, pages.TermsRequired()
		case wrong.Reason == syntax.IsEmpty:
			m = pages.Required()
		case wrong.Reason == user.NameIsAddress:
			m = pages.UserNameIsAddress()
		case field == pages.FieldEmail:
			m = pages.NotAnEmail()
		}
		if slices.Contains([]string{pages.FieldEmail, pages.FieldFirstName, pages.FieldLastName, pages.FieldUserName,
			pages.FieldTerms}, field) {
			problems = append(problems, pages.Problem{Field: field, Message: m})
		}
	}
	if problems == nil {
		return nil, err
	}
	return problems, nil
}

// registrationOf is what is known of somebody whom a provider has brought and who has no account yet. bound is the
// organization that the sign-in is bound to; empty: none.
func registrationOf(who idp.Identity, bound string, info *call.Info) federated.Registration {
	r := federated.Registration{
		OrgID:             who.Org,
		UserName:          who.UserName,
		FirstName:         who.FirstName,
		LastName:          who.LastName,
		NickName:          who.NickName,
		Language:          who.Language,
		Email:             who.Email,
		EmailFromProvider: true,
		Peer:              info.Peer,
		UserAgent:         info.UserAgent,
		RequestID:         info.RequestID,
	}
	if bound != "" {
		r.OrgID = bound
	}
	return r
}
