package session

import (
	"strings"

	"github.com/signet-idm/signet/internal/domain/user"
	"github.com/signet-idm/signet/internal/eventlog/event"
)

// SignIns is the state of a user's companion object.
type SignIns struct {
	Succeeded int64 `json:"succeeded,omitempty"`
	Failed    int64 `json:"failed,omitempty"`
	Throttled int64 `json:"throttled,omitempty"`
	Ended     int64 `json:"ended,omitempty"`
	Issued    int64 `json:"issued,omitempty"`
	Revoked   int64 `json:"revoked,omitempty"`
	Proven    int64 `json:"proven,omitempty"` // proofs after the sign-in
	Reused    int64 `json:"reused,omitempty"`
}

// Kind of the companion objects.
var Kind = event.Define(event.Schema[SignIns]{
	Name: "sign_in", Table: "sign_ins", Prefix: "sgi", Shape: 3,
	Facts: []event.Fact[SignIns]{Succeeded{}, Failed{}, Throttled{}, Ended{}, TokenIssued{}, TokenRevoked{},
		SecondFactorProven{}, Reauthenticated{}, PasswordResetRequested{}, GrantReused{}, SecondFactorGuessed{},
		DeviceRemembered{}, DeviceRecognized{}, DeviceEnded{}, OpenedBySupport{}, Erased{}},
})

// IDFor is the id of a user's companion object.
func IDFor(userID string) string {
	_, id, _ := strings.Cut(userID, "_")
	return "sgi_" + id
}

// UserOf is the user whose companion has this id.
func UserOf(id string) string {
	_, id, _ = strings.Cut(id, "_")
	return "usr_" + id
}

// Method is a way in which a person proves to be who they are, in the words of RFC 8176.
type Method string

// The methods.
const (
	ByPassword Method = "pwd"
	ByTOTP     Method = "otp"
	ByPasskey  Method = "hwk"
	ByRecovery Method = "rec" // a recovery code; not one of the RFC's
	ByProvider Method = "fed" // another identity provider said so; not one of the RFC's either
)

// RequestSource is where a request came from: personal data.
type RequestSource struct {
	Address   string `json:"address,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
}

// Succeeded records a sign-in.
type Succeeded struct {
	SessionID   string        `json:"sessionId"`
	Method      Method        `json:"method,omitempty"`      // older events have none
	Provider    string        `json:"provider,omitempty"`    // that the person came through
	Application string        `json:"application,omitempty"` // that the sign-in was for
	BoundTo     string        `json:"boundTo,omitempty"`     // the organization that it was bound to
	Personal    RequestSource `json:"-"`
}

// EventType implements event.Fact.
func (Succeeded) EventType() event.Type { return "sign_in.succeeded.v1" }

// Apply implements event.Fact.
func (Succeeded) Apply(s *SignIns) { s.Succeeded++ }

// Failed records failed attempts, at most one event a minute.
type Failed struct {
	Count    int64         `json:"count"`
	By       []FailedAs    `json:"by,omitempty"`     // older events have none
	Others   int64         `json:"others,omitempty"` // of Count, those that By does not tell apart
	Personal RequestSource `json:"-"`                // of the last one
}

// EventType implements event.Fact.
func (Failed) EventType() event.Type { return "sign_in.failed.v1" }

// Apply implements event.Fact.
func (e Failed) Apply(s *SignIns) { s.Failed += e.Count }

// Throttled records attempts that were turned away unheard, at most one event a minute.
type Throttled struct {
	Count    int64         `json:"count"`
	Personal RequestSource `json:"-"`
}

// EventType implements event.Fact.
func (Throttled) EventType() event.Type { return "sign_in.throttled.v1" }

// Apply implements event.Fact.
func (e Throttled) Apply(s *SignIns) { s.Throttled += e.Count }

// Ended records that a session was ended before its time: by its user, by an administrator, or by the identity provider
// that the person came through.
type Ended struct {
	SessionID string `json:"sessionId"`
}

// EventType implements event.Fact.
func (Ended) EventType() event.Type { return "sign_in.session_ended.v1" }

// Apply implements event.Fact.
func (Ended) Apply(s *SignIns) { s.Ended++ }

// TokenIssued records a new personal access token.
type TokenIssued struct {
	TokenID string `json:"tokenId"`
	Expires int64  `json:"expires"`
}

// EventType implements event.Fact.
func (TokenIssued) EventType() event.Type { return "sign_in.token_issued.v1" }

// Apply implements event.Fact.
func (TokenIssued) Apply(s *SignIns) { s.Issued++ }

// TokenRevoked records that a personal access token was revoked. What it was called stays unsaid: names may be
// personal.
type TokenRevoked struct {
	TokenID string `json:"tokenId"`
}

// EventType implements event.Fact.
func (TokenRevoked) EventType() event.Type { return "sign_in.token_revoked.v1" }

// Apply implements event.Fact.
func (TokenRevoked) Apply(s *SignIns) { s.Revoked++ }

// SecondFactorProven records that the person of a session proved a second factor in it, or enrolled it there.
type SecondFactorProven struct {
	SessionID string        `json:"sessionId"`
	Method    Method        `json:"method"`
	Personal  RequestSource `json:"-"`
}

// EventType implements event.Fact.
func (SecondFactorProven) EventType() event.Type { return "sign_in.second_factor_proven.v1" }

// Apply implements event.Fact.
func (SecondFactorProven) Apply(s *SignIns) { s.Proven++ }

// SecondFactorGuessed records that as many wrong codes of one kind came within a day as are heard from networks that
// are not known, after the right password. It is recorded at most once a day.
type SecondFactorGuessed struct {
	Method   Method        `json:"method"`
	Count    int64         `json:"count"`
	Personal RequestSource `json:"-"` // of the last one
}

// EventType implements event.Fact.
func (SecondFactorGuessed) EventType() event.Type { return "sign_in.second_factor_guessed.v1" }

// Apply implements event.Fact.
func (SecondFactorGuessed) Apply(*SignIns) {}

// Reauthenticated records that the person of a session gave the password once more, or proved it again to an identity
// provider.
type Reauthenticated struct {
	SessionID string        `json:"sessionId"`
	Provider  string        `json:"provider,omitempty"`
	Personal  RequestSource `json:"-"`
}

// EventType implements event.Fact.
func (Reauthenticated) EventType() event.Type { return "sign_in.reauthenticated.v1" }

// Apply implements event.Fact.
func (Reauthenticated) Apply(s *SignIns) { s.Proven++ }

// PasswordResetRequested records that somebody, perhaps not the user, asked for a mail that lets the password be reset.
// It is a fact of the companion: a stranger must not move the user's own sequence.
type PasswordResetRequested struct {
	// NoPassword: the person may not sign in with a password, and is told by mail how else.
	NoPassword bool          `json:"noPassword,omitempty"`
	Personal   RequestSource `json:"-"`
}

// Since implements event.Gated: a node of the version before would send a code that is good for nothing.
func (e PasswordResetRequested) Since() int {
	if e.NoPassword {
		return 6
	}
	return 0
}

// EventType implements event.Fact.
func (PasswordResetRequested) EventType() event.Type { return "sign_in.password_reset_requested.v1" }

// Apply implements event.Fact.
func (PasswordResetRequested) Apply(*SignIns) {}

// GrantReused records that a code or a refresh token of an application was used a second time: one of the two who had
// it should not have. Everything that was given for it has ended.
type GrantReused struct {
	ClientID string `json:"clientId"`
	What     string `json:"what"` // code, refresh_token
}

// EventType implements event.Fact.
func (GrantReused) EventType() event.Type { return "sign_in.grant_reused.v1" }

// Apply implements event.Fact.
func (GrantReused) Apply(s *SignIns) { s.Reused++ }

// Erased records that the user was removed: nothing is known of the sign-ins any more, and nothing is recorded after
// it.
type Erased struct{}

// EventType implements event.Fact.
func (Erased) EventType() event.Type { return "sign_in.erased.v1" }

// Apply implements event.Fact.
func (Erased) Apply(s *SignIns) { *s = SignIns{} }

// Companion points at the companion of a user, for a command that calls Erase.
func Companion(userID string) event.Ref { return Kind.Ref(IDFor(userID)) }

// Erase forgets the sign-ins of a user who is being removed, inside a command that declared the Companion for writing.
// Where there is none, another command cannot make one at the same moment.
func Erase(tx *event.Tx, userID string) error { return Kind.Erase(tx, IDFor(userID), Erased{}) }

// RecordReuse records a GrantReused inside a command that declared the user's companion for writing and the user for
// reading.
func RecordReuse(tx *event.Tx, userID string, fact GrantReused) error {
	return record(tx, userID, fact)
}

// RecordEnd records that a session was ended, as RecordReuse does.
func RecordEnd(tx *event.Tx, userID string, fact Ended) error { return record(tx, userID, fact) }

// record appends facts to the companion of a user, making it where it does not exist yet. The command declared the
// companion for writing and the user for reading or writing. Of somebody who was removed nothing is recorded.
func record(tx *event.Tx, userID string, facts ...event.Fact[SignIns]) error {
	return recordBy(tx, "", userID, facts...)
}

// recordBy is record for facts that name another actor than the command's; empty: that one.
func recordBy(tx *event.Tx, actor, userID string, facts ...event.Fact[SignIns]) error {
	if len(facts) == 0 {
		return nil
	}
	u, err := user.Kind.Get(tx, userID)
	if err != nil || u == nil || u.Data.State == user.Removed {
		return err
	}
	c, err := Kind.Get(tx, IDFor(userID))
	if err != nil {
		return err
	}
	if c == nil {
		if c, err = Kind.CreateBeside(tx, IDFor(userID), user.Kind.Ref(userID)); err != nil {
			return err
		}
	}
	c.ActedBy(actor)
	return c.Append(facts...)
}
