package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/call"
	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// ImportUsers creates people in the context organization, all of them or each alone.
func (s Users) ImportUsers(ctx context.Context, r *signetv1.ImportUsersRequest) (*signetv1.ImportUsersResponse, error) {
	once, err := onceFor(ctx, s.Master, s.Clock(), r)
	if err != nil {
		return nil, err
	}
	info := call.From(ctx)
	out := &signetv1.ImportUsersResponse{Results: make([]*signetv1.ImportUsersResponse_Result, len(r.GetUsers()))}
	people := make(user.Import, 0, len(r.GetUsers()))
	resultAt := make([]int, 0, len(r.GetUsers())) // of people among the results
	for i, u := range r.GetUsers() {
		out.Results[i] = &signetv1.ImportUsersResponse_Result{Reference: u.GetReference()}
		person := importedOf(u)
		if alone(r) {
			wrong, err := info.Check(u)
			if err != nil {
				return nil, err
			}
			if wrong = both(wrong, person.Violations()); len(wrong) > 0 {
				out.Results[i].Error = refusal(errs.Invalid(wrong...))
				continue
			}
		}
		people, resultAt = append(people, person), append(resultAt, i)
	}
	run := people.Together
	switch {
	case r.GetDryRun():
		run = func(ctx context.Context, s event.Store, permit access.Permit, _ event.Once) ([]user.Added, error) {
			return people.Try(ctx, s, permit, !alone(r))
		}
	case alone(r):
		run = people.Each
	}
	added, err := run(ctx, s.Store, info.Permit, once)
	if err != nil {
		return nil, err
	}
	for i, a := range added {
		result := out.Results[resultAt[i]]
		if a.ID == "" {
			result.Error = refusal(user.ErrUserNameTaken)
			continue
		}
		if out.Imported++; !r.GetDryRun() {
			result.UserId, result.Details = a.ID, complete(a.Details)
		}
	}
	out.Refused = int32(len(out.Results)) - out.Imported
	return out, nil
}

// alone tells whether what is wrong with one is the problem of that one alone.
func alone(r *signetv1.ImportUsersRequest) bool {
	return r.GetMode() == signetv1.ImportMode_IMPORT_MODE_PER_ITEM
}

// checkImport lists what is wrong with any of the people, where that keeps all of them out.
func checkImport(r *signetv1.ImportUsersRequest, rules call.Rules) (all []errs.Violation, err error) {
	if alone(r) {
		return nil, nil
	}
	for i, u := range r.GetUsers() {
		wrong, err := rules(u)
		if err != nil {
			return nil, err
		}
		person := importedOf(u)
		for _, v := range both(wrong, person.Violations()) {
			v.Field = "users[" + strconv.Itoa(i) + "]." + v.Field
			all = append(all, v)
		}
		if len(all) >= errs.MaxViolations {
			break // nobody is told more
		}
	}
	return all, nil
}

// both adds what the rule says of other fields than those, and what is in them, that the definition has found wrong
// already.
func both(defined, ruled []errs.Violation) []errs.Violation {
	all := slices.Clip(defined)
	for _, v := range ruled {
		if !slices.ContainsFunc(defined,
			func(d errs.Violation) bool { return d.Field == v.Field || strings.HasPrefix(v.Field, d.Field+".") }) {
			all = append(all, v)
		}
	}
	return all
}

func importedOf(u *signetv1.ImportUsersRequest_User) user.Imported {
	p := u.GetProfile()
	return user.Imported{
		NewHuman: user.NewHuman{
			UserName: u.GetUserName(),
			Profile: user.Profile{FirstName: p.GetFirstName(), LastName: p.GetLastName(), NickName: p.GetNickName(),
				DisplayName: p.GetDisplayName(), PreferredLanguage: p.GetPreferredLanguage(),
				Gender: genders.name(p.GetGender())},
			Email: u.GetEmail().GetAddress(), EmailVerified: u.GetEmail().GetVerified(),
			Phone: u.GetPhone().GetNumber(), PhoneVerified: u.GetPhone().GetVerified(),
		},
		PasswordHash: u.GetPasswordHash(), ChangeRequired: u.GetPasswordChangeRequired(),
	}
}

// refusal shows why one of many was refused.
func refusal(e *errs.Error) *signetv1.ImportUsersResponse_Error {
	out := &signetv1.ImportUsersResponse_Error{Reason: string(e.Reason),
		Message: strings.Replace(e.Message, "the request is", "the user is", 1)}
	for _, f := range e.Fields {
		out.FieldViolations = append(out.FieldViolations,
			&signetv1.ImportUsersResponse_Error_Violation{Field: f.Field, Description: f.Message})
	}
	return out
}
