package pages

import "time"

// What can be wrong with a field.

// Required says that a field must be filled in.
func Required() Message { return Message{key: "problem.required"} }

// TooLong says how many characters a field may have.
func TooLong(most int) Message { return Message{key: "problem.tooLong", args: []any{"n", most}} }

// NotValid says that a field is not what it should be.
func NotValid() Message { return Message{key: "problem.notValid"} }

// NotAnEmail says that no mail could go to what was typed.
func NotAnEmail() Message { return Message{key: "problem.notAnEmail"} }

// NotAPhone says that what was typed is no number that can be called from everywhere.
func NotAPhone() Message { return Message{key: "problem.notAPhone"} }

// WrongPassword is the one answer to a sign-in that failed, whatever the cause.
func WrongPassword() Message { return Message{key: "problem.wrongPassword"} }

// WrongCurrentPassword says that the password of somebody who is signed in is not right.
func WrongCurrentPassword() Message { return Message{key: "problem.wrongCurrentPassword"} }

// WrongCode says that a code is not right, or not any more.
func WrongCode() Message { return Message{key: "problem.wrongCode"} }

// PasswordTooShort says how many characters a new password needs.
func PasswordTooShort(least int) Message {
	return Message{key: "problem.passwordTooShort", args: []any{"n", least}}
}

// PasswordTooCommon says that everybody would guess the new password.
func PasswordTooCommon() Message { return Message{key: "problem.passwordTooCommon"} }

// PasswordUnchanged says that the new password is the old one.
func PasswordUnchanged() Message { return Message{key: "problem.passwordUnchanged"} }

// PasswordsDiffer says that the new password was not repeated as it was.
func PasswordsDiffer() Message { return Message{key: "problem.passwordsDiffer"} }

// What can be wrong with a request as a whole.

// SecondFactorNeeded says that a mail alone does not reset the password yet.
func SecondFactorNeeded() Message { return Message{key: "problem.secondFactorNeeded"} }

// Throttled says how long to wait after too many attempts.
func Throttled(wait time.Duration) Message {
	return Message{key: "problem.throttled", args: []any{"wait", wait}}
}

// Locked says that the account is locked, to somebody who has proven to be its owner.
func Locked() Message { return Message{key: "problem.locked"} }

// NotAllowed says that the person may not use the application.
func NotAllowed(application string) Message {
	return Message{key: "problem.notAllowed", args: []any{"application", application}}
}

// OtherOrganization says that the sign-in is for people of one organization only.
func OtherOrganization(organization string) Message {
	return Message{key: "problem.otherOrganization", args: []any{"organization", organization}}
}

// PasskeyRemoved says to the owner of a passkey that it counts no more.
func PasskeyRemoved() Message { return Message{key: "problem.passkeyRemoved"} }

// PasskeyFailed says that a passkey was not accepted.
func PasskeyFailed() Message { return Message{key: "problem.passkey"} }

// MailNotConfigured says that this installation sends no mail.
func MailNotConfigured() Message { return Message{key: "problem.noMail"} }

// Changed says that somebody else changed the same thing in the meantime.
func Changed() Message { return Message{key: "problem.changed"} }

// FactorNeeded says that the last second factor has to stay.
func FactorNeeded() Message { return Message{key: "problem.factorNeeded"} }

// TooManyLinks says that no other account at a provider can be linked.
func TooManyLinks() Message { return Message{key: "problem.tooManyLinks"} }

// LinkedElsewhere says that an account at a provider is linked to another account here.
func LinkedElsewhere() Message { return Message{key: "problem.linkedElsewhere"} }

// LastWayIn says that the last way to sign in has to stay.
func LastWayIn() Message { return Message{key: "problem.lastWayIn"} }

// MethodNotAllowed says that the organization does not allow this way to sign in.
func MethodNotAllowed() Message { return Message{key: "problem.methodNotAllowed"} }

// NotProvenThere says that somebody who is signed in did not prove at a provider to be the same person.
func NotProvenThere(provider string) Message {
	return Message{key: "problem.notProvenThere", args: []any{"provider", provider}}
}

// UserNameTaken says that somebody else has the user name.
func UserNameTaken() Message { return Message{key: "problem.userNameTaken"} }

// UserNameIsAddress says that only one's own confirmed address can be a user name with an at sign.
func UserNameIsAddress() Message { return Message{key: "problem.userNameIsAddress"} }

// TooManyFactors says that there is no room for another second factor.
func TooManyFactors() Message { return Message{key: "problem.tooManyFactors"} }

// What went well.

// Saved says that the changes are kept.
func Saved() Message { return Message{key: "done.saved"} }

// PasswordChanged says that the new password counts.
func PasswordChanged() Message { return Message{key: "done.passwordChanged"} }

// EmailRestored says that the address from before is back.
func EmailRestored() Message { return Message{key: "done.emailRestored"} }

// FactorAdded says that a second factor is there.
func FactorAdded() Message { return Message{key: "done.factorAdded"} }

// FactorRemoved says that a second factor is gone.
func FactorRemoved() Message { return Message{key: "done.factorRemoved"} }

// AccountLinked says that an account at a provider can be used to sign in from now on.
func AccountLinked() Message { return Message{key: "done.accountLinked"} }

// AccountUnlinked says that it cannot be used any more.
func AccountUnlinked() Message { return Message{key: "done.accountUnlinked"} }

// SessionEnded says that a session is over.
func SessionEnded() Message { return Message{key: "done.sessionEnded"} }

// OtherSessionsEnded says that only this session is left.
func OtherSessionsEnded() Message { return Message{key: "done.otherSessionsEnded"} }

// DeviceForgotten says that the second factor is asked for again on a device.
func DeviceForgotten() Message { return Message{key: "done.deviceForgotten"} }

// TokenRevoked says that a personal access token is gone.
func TokenRevoked() Message { return Message{key: "done.tokenRevoked"} }

// Disconnected says that an application has no access any more.
func Disconnected() Message { return Message{key: "done.disconnected"} }

// OrganizationLeft says that the person is not in an organization any more.
func OrganizationLeft() Message { return Message{key: "done.organizationLeft"} }

// OfferAccepted says that the person is in another organization now, or has roles there.
func OfferAccepted() Message { return Message{key: "done.offerAccepted"} }

// OfferDeclined says that an offer is gone.
func OfferDeclined() Message { return Message{key: "done.offerDeclined"} }

// OwnPasswordFirst says that somebody else has set the password.
func OwnPasswordFirst() Message { return Message{key: "problem.ownPasswordFirst"} }

// OfferInvalid says that who made an offer may not give these roles any more.
func OfferInvalid() Message { return Message{key: "problem.offerInvalid"} }

// MailSent says that a mail with a code is on its way.
func MailSent(address string) Message {
	return Message{key: "done.mailSent", args: []any{"address", address}}
}

// CodeSent says that a code is on its way to a phone.
func CodeSent(address string) Message {
	return Message{key: "done.codeSent", args: []any{"address", address}}
}

// PhoneProven says that the phone number is the person's.
func PhoneProven() Message { return Message{key: "done.phoneProven"} }
