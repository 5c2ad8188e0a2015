package trials

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/grant"
	"github.com/signet-idm/signet/internal/grant/claimset"
)

// answer shows what the application would get.
func (s Service) answer(t *grant.Trial, a *grant.TrialAnswer) (out *signetv1.SignInTrialAnswer, err error) {
	out = &signetv1.SignInTrialAnswer{Address: a.Address, TokenRequest: s.tokenRequest(t), Scopes: a.Scopes, AccessTokenSeconds: int64(a.RealLife.Seconds()), RefreshToken: a.Refreshes}
	if out.AccessToken, err = document(a.Access, a.AccessClaims); err != nil {
		return nil, err
	}
	if out.Introspection, err = document("", a.Introspection); err != nil {
		return nil, err
	}
	if a.IDToken == "" {
		return out, nil
	}
	if out.IdToken, err = document(a.IDToken, a.IDClaims); err != nil {
		return nil, err
	}
	out.UserInfo, err = document("", a.UserInfo)
	return out, err
}

func document(token string, claims claimset.Set) (*signetv1.SignInTrialDocument, error) {
	out := &signetv1.SignInTrialDocument{Token: token}
	for _, name := range slices.Sorted(maps.Keys(claims.Values)) {
		why := claims.Why(name)
		value, err := json.Marshal(claims.Values[name])
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", name, err)
		}
		c := &signetv1.SignInTrialClaim{Name: name, Value: string(value), Source: sources[why.Source].value, Detail: why.Of, Message: sources[why.Source].text(why.Of)}
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
		out.Missing = append(out.Missing, &signetv1.SignInTrialMissing{Name: name, Lack: lacks[why.Lack].value, Detail: why.Of, Message: lacks[why.Lack].text(why.Of)})
	}
	return out, nil
}

// said is a reason with its text in English; %s stands for what it is about.
type said[T any] struct {
	value   T
	message string
	names   bool // the text names what it is about
}

func (s said[T]) text(of string) string {
	if s.names {
		return fmt.Sprintf(s.message, of)
	}
	return s.message
}

var sources = map[claimset.Source]said[signetv1.SignInTrialSource]{
	claimset.Always:  {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_ALWAYS, "It is always there.", false},
	claimset.Scope:   {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_SCOPE, "The scope %s was granted.", true},
	claimset.Request: {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_REQUEST, "The request asks for it by the parameter %s.", true},
	claimset.Setting: {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_SETTING, "The setting %s of the application switches it on.", true},
	claimset.SignIn:  {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_SIGN_IN, "It says how the person signed in.", false},
	claimset.Size:    {signetv1.SignInTrialSource_SIGN_IN_TRIAL_SOURCE_SIZE, "It names the claims that are too large for a token.", false},
}

var lacks = map[claimset.Lack]said[signetv1.SignInTrialLack]{
	claimset.NoScope:       {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_SCOPE, "The scope %s was not granted.", true},
	claimset.NoValue:       {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_NO_VALUE, "The account has no such value.", false},
	claimset.NotSet:        {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_SETTING, "The setting %s of the application leaves it out.", true},
	claimset.NotAsked:      {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_REQUEST, "The request does not have the parameter %s.", true},
	claimset.TooLarge:      {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_SIZE, "It is too large for a token. User info and introspection have it.", false},
	claimset.OtherAudience: {signetv1.SignInTrialLack_SIGN_IN_TRIAL_LACK_AUDIENCE, "Another application in the audience does not belong to the same project, or has its own list of keys.", false},
}
