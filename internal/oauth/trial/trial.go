// Package trial holds the record of a trial of a sign-in: an administrator signs in to an application with their own
// account, and sees what happened on the way and why. The rules are in package oauth (trial.go); the pages in package
// login record the steps.
package trial

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/oauth/request"
)

const (
	// Audience is that of all tokens of trials. No application and no API has this name.
	Audience = "urn:signet:trial"
	// TokenType is that of all tokens of trials, as their header has it. Not even this server takes one for a real ID
	// token.
	TokenType = "trial+jwt"
	// TokenLife is how long they can be read as valid.
	TokenLife = time.Minute

	// Life is how long a trial can be walked, and then finished.
	Life = 10 * time.Minute
	// MaxOpen is how many a person can have at a time.
	MaxOpen = 20
	// Prefix of the identifiers of trials. A node of the version before takes none of them for a real request.
	Prefix = "try_"

	maxSteps = 100
)

// State of a trial.
type State string

// STARTED -> RUNNING -> APPROVED or REFUSED.
const (
	Started  State = "started"  // its address was not opened yet
	Running  State = "running"  // the person is on the pages
	Approved State = "approved" // the application would get a code
	Refused  State = "refused"  // it would get an error, or nothing
)

// Record is what is kept of a trial.
type Record struct {
	UserID  string      `json:"userId"`  // who started it: nobody else can walk it
	Session string      `json:"session"` // in which they did: only its browser can walk it
	Ask     request.Ask `json:"ask"`     // as the application would send it
	// Verifier is that of the challenge, which the application would keep; empty: none.
	Verifier string   `json:"verifier,omitempty"`
	State    State    `json:"state"`
	Created  int64    `json:"created"`
	Expires  int64    `json:"expires"`
	Steps    []Step   `json:"steps,omitempty"`
	Refusal  *Refusal `json:"refusal,omitempty"`
}

// Ended tells whether the walk is over.
func (r *Record) Ended() bool { return r.State == Approved || r.State == Refused }

// Refusal is what the application would get, or the person would see, instead of a code.
type Refusal struct {
	Error       string `json:"error"`
	Description string `json:"description"`
	// that the browser would take to the application; empty: it would not come there
	Address string `json:"address,omitempty"`
}

// Path is that of the page that begins the walk of a trial, which is its Param. The page of the console in the end has
// it, too.
const (
	Path  = "/login/try"
	Param = "trial"
)

// Start is the address that begins the walk, on this server.
func Start(id string) string { return Path + "?" + url.Values{Param: {id}}.Encode() }

// RefusalOf is what an application is told of an error at an address, or a person where there is none.
func RefusalOf(e *errs.Error, address string) Refusal {
	return Refusal{Error: strings.ToLower(string(e.Reason)), Description: e.Message, Address: address}
}

// Address of the page of the console that every trial leads to.
func Address(appID, id string) string {
	return "/console/apps/" + url.PathEscape(appID) + "/try?" + url.Values{Param: {id}}.Encode()
}

// Errors of trials themselves.
const (
	OtherAccount = "trial_other_account"
	NewAccount   = "trial_new_account"
)

// Page of the sign-in, or a decision.
type Page string

// The pages and decisions, in the order in which they are seen to.
const (
	Opened        Page = "opened"
	ChooseAccount Page = "choose_account"
	LoginName     Page = "login_name"
	Provider      Page = "provider"
	Password      Page = "password"
	SecondFactor  Page = "second_factor"
	EnrolFactor   Page = "enrol_factor"
	NewPassword   Page = "new_password"
	Account       Page = "account" // whether the application takes the account: organization and role
	Consent       Page = "consent"
	Result        Page = "result"
)

// Outcome of a step.
type Outcome string

// The outcomes.
const (
	Shown   Outcome = "shown"
	Done    Outcome = "done"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
	Ended   Outcome = "ended"
)

// Why is the reason for a step. It comes from the code that decides about the step.
type Why struct {
	Because Because `json:"because,omitempty"`
	Detail  string  `json:"detail,omitempty"`
}

// Step is something that happened on the way.
type Step struct {
	Page    Page    `json:"page"`
	Outcome Outcome `json:"outcome"`
	Why
	At int64 `json:"at"`
}

// Add notes a step, unless the page is only shown again, or there are too many.
func (r *Record) Add(s Step) {
	if last := len(r.Steps) - 1; last >= 0 && r.Steps[last].Page == s.Page && r.Steps[last].Outcome == s.Outcome &&
		r.Steps[last].Why == s.Why && s.Outcome == Shown {
		return
	}
	if len(r.Steps) < maxSteps || s.Outcome == Ended || s.Page == Result {
		r.Steps = append(r.Steps, s)
	}
}

// Met tells whether somebody came by a page on the way. Who signed in on the way has met the page of the password,
// whatever was asked for.
func (r *Record) Met(p Page) bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool {
		return s.Page == p || p == Password && (s.Page == LoginName || s.Page == Provider)
	})
}
