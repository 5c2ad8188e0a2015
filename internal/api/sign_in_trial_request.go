package api

import (
	"net/url"
	"strings"

	signetv1 "github.com/signet-idm/signet/gen/signet/v1"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/oauth"
	"github.com/signet-idm/signet/internal/oauth/request"
)

// trialParameter of an authorization request, and what it means.
type trialParameter struct{ name, value, meaning string }

// trialParameters of a request, in the order in which people read them.
func trialParameters(a request.Ask) []trialParameter {
	all := []trialParameter{
		{"client_id", a.ClientID, "The application."},
		{"redirect_uri", a.RedirectURI,
			"The address of the application that the browser goes back to. It must be registered."},
		{"response_type", a.ResponseType, "The application wants a code, which it exchanges for tokens."},
		{"scope", a.Scope, "What the application wants to know and to do."},
		{"state", a.State, "A random value that comes back, by which the application recognizes its own request."},
		{"nonce", a.Nonce, "A random value that the ID token repeats, so that the application recognizes a token of another sign-in."},
		{"code_challenge", a.CodeChallenge,
			"The digest of a secret (PKCE): only the application that started the sign-in can exchange the code."},
		{"code_challenge_method", a.CodeChallengeMethod, "How the digest is made."},
		{"prompt", a.Prompt, "What the person must be asked, or that nobody may be asked."},
		{"max_age", a.MaxAge, "How many seconds ago the person may have signed in at most."},
		{"acr_values", a.ACRValues, "How the person should sign in, the best way first."},
		{"login_hint", a.LoginHint, "The login name that the page is filled in with."},
		{"idp_hint", a.ProviderHint, "The identity provider that the person is sent to."},
		{"claims", a.Claims, "Single claims that the application wants in its ID token."},
		{"ui_locales", a.UILocales, "The languages of the pages."},
	}
	var sent []trialParameter
	for _, p := range all {
		if p.value != "" {
			sent = append(sent, p)
		}
	}
	return sent
}

// request shows the request of a trial as the application would send it.
func (s SignInTrials) request(t *oauth.Trial) *signetv1.SignInTrialRequest {
	out := &signetv1.SignInTrialRequest{}
	var query []string
	for _, p := range trialParameters(t.Ask) {
		query = append(query, p.name+"="+url.QueryEscape(p.value))
		out.Parameters = append(out.Parameters,
			&signetv1.SignInTrialParameter{Name: p.name, Value: p.value, Message: p.meaning})
	}
	out.Address = s.Grants.Issuer + "/oauth/authorize?" + strings.Join(query, "&")
	for _, f := range t.Findings {
		out.Findings = append(out.Findings,
			&signetv1.SignInTrialFinding{Severity: trialSeverities[f.Severity], Code: string(f.Code),
				Parameter: f.Parameter, Value: f.Value, Message: f.Message()})
	}
	return out
}

// tokenRequest is how the application would ask for tokens, with its secret left out.
func (s SignInTrials) tokenRequest(t *oauth.Trial) string {
	data := []string{"grant_type=authorization_code", "code=CODE", "redirect_uri=" + t.Ask.RedirectURI}
	if t.Verifier != "" {
		data = append(data, "code_verifier="+t.Verifier)
	}
	command := []string{"curl", quoted(s.Grants.TokenEndpoint())}
	var secrets []string
	switch t.App.Data.AuthMethod {
	case app.SecretBasic:
		command = append(command, "--user", `"`+t.App.ID+`:$CLIENT_SECRET"`)
	case app.SecretPost:
		data, secrets = append(data, "client_id="+t.App.ID), []string{`"client_secret=$CLIENT_SECRET"`}
	case app.PrivateKeyJWT:
		data, secrets = append(data, "client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
			[]string{`"client_assertion=$CLIENT_ASSERTION"`}
	default:
		data = append(data, "client_id="+t.App.ID)
	}
	for _, d := range data {
		command = append(command, "--data-urlencode", quoted(d))
	}
	for _, d := range secrets {
		command = append(command, "--data-urlencode", d)
	}
	return strings.Join(command, " ")
}

// quoted is a text as one word of a shell. Nothing in it is special there.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
