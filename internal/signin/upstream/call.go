package upstream

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/signet-idm/signet/internal/base/fairqueue"
	"github.com/signet-idm/signet/internal/base/outbound"
	"github.com/signet-idm/signet/internal/domain/idp"
	"github.com/signet-idm/signet/internal/limit/breaker"
	"github.com/signet-idm/signet/internal/signin/upstream/failure"
)

const (
	allowHint = "this server does not call that address: it must be an https:// URL of a public host, or in a network that the operator allows with --outbound-allow"
	awayHint  = "the provider did not answer in time, or not correctly: check that it works, and that this server can reach it"
)

// call makes one call to a provider, in its organization's share and only while the provider works. Errors: *Failure.
func (f *Federation) call(ctx context.Context, p *Provider,
	ask func(ctx context.Context) (*outbound.Response, error)) (*outbound.Response, error) {
	var answer *outbound.Response
	err := f.breakers.Do(ctx, p.ID, func() (breaker.Outcome, error) {
		outcome := breaker.Unknown
		err := f.Calls.Do(ctx, fairqueue.Claim{Org: p.Org}, func() (err error) {
			answer, err = ask(ctx)
			switch {
			case err == nil && answer.Status < 500:
				outcome = breaker.Worked
			case errors.Is(ctx.Err(), context.Canceled): // by who waits for it: anybody could make a provider look broken
			default:
				outcome = breaker.Failed
			}
			return err
		})
		return outcome, err
	})
	if err != nil {
		return nil, called(err, failure.Unreachable, awayHint)
	}
	if answer.Status >= 500 {
		return nil, failure.New(failure.Unreachable, awayHint)
	}
	return answer, nil
}

// called says what a call failed with.
func called(err error, check, hint string) *Failure {
	made := failure.New(check, hint)
	switch {
	case errors.Is(err, outbound.ErrRefused):
		made = failure.New(failure.Address, allowHint)
	case errors.Is(err, fairqueue.ErrUsedUp), errors.Is(err, fairqueue.ErrBusy):
		made = failure.New(failure.Busy, "more people sign in than this server can serve at once: try again shortly")
	case errors.Is(err, breaker.ErrOpen):
		made = failure.New(failure.Unreachable, awayHint)
	}
	return made.Because(err)
}

// document is the JSON object in an answer.
func document(answer *outbound.Response) (tokenClaims, error) {
	return readClaims(answer.Body)
}

// address is an address of a provider with parameters. What its query has already stays, ours count where names are the
// same. A browser may reach what this server must not, but it is sent in the clear only into networks that the operator
// allows.
func (f *Federation) address(field, endpoint string, more idp.Parameters, ours func(q url.Values)) (string, error) {
	u, err := outbound.Check(endpoint)
	if err == nil && u.Scheme != "https" {
		err = f.Client.Accepts(endpoint)
	}
	if err != nil {
		return "", failure.New(failure.Configuration, field+" must be an https:// URL").Because(err)
	}
	q := u.Query()
	for name, value := range more {
		q.Set(name, value)
	}
	ours(q)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// answeredError is what a provider answers instead of a code. Its words are not repeated: anybody can send such an
// answer.
func answeredError(answer url.Values) error {
	switch answer.Get("error") {
	case "":
		return nil
	case "access_denied", "consent_required", "interaction_required", "login_required", "account_selection_required",
		"user_cancelled_authorize":
		return failure.New(failure.Denied, "the person cancelled, or the provider does not let them in")
	case "server_error", "temporarily_unavailable":
		return failure.New(failure.Unreachable, "the provider says that it does not work at the moment")
	}
	return failure.New(failure.Refused,
		"the provider refused the request: check the client id, the scopes, the extra parameters and the callback address that is registered there")
}

func isBearer(kind string) bool { return strings.EqualFold(kind, "bearer") }
