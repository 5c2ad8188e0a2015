// Package request reads the parameters of an authorization request: those that can be checked by themselves, and the
// parameter claims (OpenID Connect Core, section 5.5). It trusts none of them, because anybody can send them.
package request

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/dpop"
)

// Ask is an authorization request as an application sends it, in the words of OAuth.
type Ask struct {
	ClientID            string
	RedirectURI         string
	ResponseType        string
	ResponseMode        string
	Scope               string
	State               string
	Nonce               string
	CodeChallenge       string
	CodeChallengeMethod string
	Prompt              string
	MaxAge              string
	LoginHint           string
	UILocales           string
	ProviderHint        string // idp_hint
	Claims              string // JSON, see claimreq
	ACRValues           string
	Request             string // request objects are not supported
	RequestURI          string
	Key                 string // dpop_jkt: thumbprint of the key that the code is for

	Subject string // the user that the application means, from an ID token (id_token_hint); empty: any user
	Unknown bool   // the application means a user, but the ID token can no longer be read

	Browser string // the secret that tells the browser from others, see oauth.Pending
}

// Response modes: where the parameters of an answer go. An application that names none gets them in the query.
const (
	ModeQuery    = "query"
	ModeFragment = "fragment"
	ModeFormPost = "form_post" // OAuth 2.0 Form Post Response Mode
)

// Modes are all of them.
var Modes = []string{ModeQuery, ModeFragment, ModeFormPost}

// Prompts, in the words of OpenID Connect.
const (
	PromptNone    = "none"
	PromptLogin   = "login"
	PromptConsent = "consent"
	PromptSelect  = "select_account"
	PromptCreate  = "create" // OpenID Connect Prompt Create 1.0
)

// The reasons of this package: words of OAuth in upper case.
const (
	UnsupportedResponseType errs.Reason = "UNSUPPORTED_RESPONSE_TYPE"
	RequestNotSupported     errs.Reason = "REQUEST_NOT_SUPPORTED"
)

// Bounds of what an application can send along.
const (
	MaxState   = 2000
	MaxNonce   = 500
	MaxHint    = 500
	maxLocales = 20
	maxLocale  = 35 // characters of a language tag
)

// Parameters judges those that are read by themselves.
func (a Ask) Parameters() error {
	switch {
	case a.Request != "" || a.RequestURI != "":
		return errs.New(errs.InvalidArgument, RequestNotSupported,
			"request objects are not supported: send plain parameters")
	case a.ResponseType != "code":
		return errs.New(errs.InvalidArgument, UnsupportedResponseType, "only response_type=code is supported")
	case a.ResponseMode != "" && !slices.Contains(Modes, a.ResponseMode):
		return errs.Wrong("response_mode", errs.Plain("must be query, fragment or form_post, or be left out"))
	case a.ResponseMode == ModeFormPost && !strings.HasPrefix(a.RedirectURI, "https:") &&
		!strings.HasPrefix(a.RedirectURI, "http:"):
		return errs.Wrong("response_mode", errs.Plain("must not be form_post for this redirect_uri: a browser cannot "+
			"post to a private scheme"))
	case len(a.State) > MaxState:
		return errs.Wrong("state", errs.Plain("is too long"))
	case len(a.Nonce) > MaxNonce:
		return errs.Wrong("nonce", errs.Plain("is too long"))
	case len(a.LoginHint) > MaxHint:
		return errs.Wrong("login_hint", errs.Plain("is too long"))
	case a.Key != "" && !dpop.IsThumbprint(a.Key):
		return errs.Wrong("dpop_jkt", errs.Plain("must be the SHA-256 thumbprint of a key in base64url without padding"))
	case len(a.ProviderHint) > event.MaxID:
		return errs.Wrong("idp_hint", errs.Plain("must be the identifier of an identity provider"))
	}
	return nil
}

// StateBack is the state that goes back to the application with a refusal; empty for one that is too long.
func (a Ask) StateBack() string {
	if len(a.State) > MaxState {
		return ""
	}
	return a.State
}

// ModeBack is the response mode of a refusal; the default one where the request names one that does not exist, or does
// not fit.
func (a Ask) ModeBack() string {
	if (Ask{ResponseType: "code", RedirectURI: a.RedirectURI, ResponseMode: a.ResponseMode}).Parameters() != nil {
		return ""
	}
	return a.ResponseMode
}

// Answer is how a browser takes the parameters of an answer to the application.
type Answer struct {
	Address string     // where the browser goes
	Form    url.Values // what it posts there (form_post); nil: it is redirected there, and everything is in the address
}

// AnswerAt puts the parameters of an answer where the mode wants them. Only an address that is registered comes here.
func AnswerAt(redirectURI, mode string, parameters url.Values) Answer {
	u, err := url.Parse(redirectURI)
	if err != nil {
		panic(err) // it was read when it was registered
	}
	switch mode {
	case ModeFormPost:
		return Answer{Address: u.String(), Form: parameters}
	case ModeFragment:
		// a registered address has no fragment of its own
		return Answer{Address: u.String() + "#" + parameters.Encode()}
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += parameters.Encode()
	return Answer{Address: u.String()}
}

// Prompt gives the prompts, each once.
func Prompt(text string) ([]string, error) {
	prompts := strings.Fields(text)
	for _, p := range prompts {
		if !slices.Contains([]string{PromptNone, PromptLogin, PromptConsent, PromptSelect, PromptCreate}, p) ||
			p == PromptNone && len(prompts) > 1 {
			return nil, errs.Wrong("prompt", errs.Plain("must be none, or some of login, consent, select_account and "+
				"create"))
		}
	}
	slices.Sort(prompts)
	return slices.Compact(prompts), nil
}

// MaxAge gives the number of seconds; nil where the application sets no limit.
func MaxAge(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	age, err := strconv.ParseInt(text, 10, 32)
	if err != nil || age < 0 {
		return nil, errs.Wrong("max_age", errs.Plain("must be a number of seconds"))
	}
	return &age, nil
}

// Locales leaves out what is no language, and more of them than anybody speaks: what is stored for strangers is
// bounded.
func Locales(tags []string) []string {
	tags = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return len(tag) > maxLocale })
	return tags[:min(len(tags), maxLocales)]
}

// Challenge judges PKCE: only S256, and never without where a client cannot keep a secret.
func (a Ask) Challenge(secretless bool) error {
	if a.CodeChallenge == "" && a.CodeChallengeMethod == "" {
		if secretless {
			return errs.Wrong("code_challenge", errs.Plain("must be sent: this application has no secret"))
		}
		return nil
	}
	if a.CodeChallengeMethod != "S256" {
		return errs.Wrong("code_challenge_method", errs.Plain("must be S256"))
	}
	if sum, err := base64.RawURLEncoding.DecodeString(a.CodeChallenge); err != nil || len(sum) != 32 {
		return errs.Wrong("code_challenge", errs.Plain("must be the SHA-256 of the verifier in base64url without "+
			"padding"))
	}
	return nil
}

// Verified judges a PKCE verifier. A verifier without a challenge is refused, too: somebody has taken the challenge
// out.
func Verified(challenge, verifier string) bool {
	if challenge == "" || verifier == "" {
		return challenge == verifier
	}
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}
