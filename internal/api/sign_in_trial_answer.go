package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/claimset"
)

// answer shows what the application would get.
func (s SignInTrials) answer(t *oauth.Trial, a *oauth.TrialAnswer) (out *signetv1.SignInTrialAnswer, err error) {
	out = &signetv1.SignInTrialAnswer{Address: a.Address, TokenRequest: s.tokenRequest(t), Scopes: a.Scopes,
		AccessTokenSeconds: int64(a.RealLife.Seconds()), RefreshToken: a.Refreshes}
	if out.AccessToken, err = trialDocument(a.Access, a.AccessClaims); err != nil {
		return nil, err
	}
	if out.Introspection, err = trialDocument("", a.Introspection); err != nil {
		return nil, err
	}
	if a.IDToken == "" {
		return out, nil
	}
	if out.IdToken, err = trialDocument(a.IDToken, a.IDClaims); err != nil {
		return nil, err
	}
	out.UserInfo, err = trialDocument("", a.UserInfo)
	return out, err
}

func trialDocument(token string, claims claimset.Set) (*signetv1.SignInTrialDocument, error) {
	out := &signetv1.SignInTrialDocument{Token: token}
	for _, name := range slices.Sorted(maps.Keys(claims.Values)) {
		why := claims.Why(name)
		value, err := json.Marshal(claims.Values[name])
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", name, err)
		}
		c := &signetv1.SignInTrialClaim{Name: name, Value: string(value), Source: claimSources[why.Source].value,
			Detail: why.Of, Message: claimSources[why.Source].text(why.Of)}
		if why.Real != nil {
			real, err := json.Marshal(why.Real)
			if err != nil {
				return nil, fmt.Errorf("claim %s: %w", name, err)
			}
			c.RealValue = string(real)
		}
		out.Claims = append(out.Claims, c)
	}
	missing := claims.Missing()
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		why := missing[name]
		out.Missing = append(out.Missing,
			&signetv1.SignInTrialMissing{Name: name, Lack: claimLacks[why.Lack].value, Detail: why.Of,
				Message: claimLacks[why.Lack].text(why.Of)})
	}
	return out, nil
}

// said is a reason with its text in English; % stands for what it is about.
type said[T any] struct {
	value   T
	message string
}

func (s said[T]) text(of string) string { return strings.ReplaceAll(s.message, "%", of) }

var claimSources = map[claimset.Source]said[signetv1.SignInTrialSource]{
	claimset.Always: {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_ALWAYS, "It is always there."},
	claimset.Scope:  {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_SCOPE, "The scope % was granted."},
	claimset.Request: {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_REQUEST,
		"The request asks for it by the parameter %."},
	claimset.Setting: {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_SETTING,
		"The setting % of the application switches it on."},
	claimset.SignIn: {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_SIGN_IN, "It says how the person signed in."},
	claimset.Size: {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_SIZE,
		"It names the claims that are too large for a token."},
}

var claimLacks = map[claimset.Lack]said[signetv1.SignInTrialLack]{
	claimset.NoScope: {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_SCOPE, "The scope % was not granted."},
	claimset.NoValue: {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_NO_VALUE, "The account has no such value."},
	claimset.NotSet: {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_SETTING,
		"The setting % of the application leaves it out."},
	claimset.NotAsked: {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_REQUEST,
		"The request does not have the parameter %."},
	claimset.TooLarge: {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_SIZE,
		"It is too large for a token. User info and introspection have it."},
	claimset.OtherAudience: {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_AUDIENCE,
		"Another application in the audience does not belong to the same project, or has its own list of keys."},
	claimset.OtherOrganization: {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_ORGANIZATION,
		"It is told only of people of the application's own organization: the same value could mean something else in another one."},
}
