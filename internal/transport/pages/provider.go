package pages

import (
	"net/url"
	"time"
)

// Provider is a button that leads to an identity provider. Pressing it sends a form to To, because only a form shows
// that somebody has chosen.
type Provider struct {
	Name   string
	To     Link
	Google bool // it has the look that Google wants
}

// MoreProviders leads to the providers that a page does not show. The zero value: it shows all of them.
type MoreProviders struct {
	There  bool
	Find   string   // what the names begin with that are shown
	Hidden []Hidden // parameters of the page
	Next   Link     // to the next ones; none: these were the last
	None   bool     // nothing was found
}

// NewMoreProviders makes it. next leads to the ones behind those that are shown, kept are the parameters of the page.
func NewMoreProviders(find string, behind bool, next Link, kept url.Values) MoreProviders {
	return MoreProviders{There: find != "" || behind || !next.IsNone(), Find: find, Next: next, Hidden: hidden(kept)}
}

// Register asks somebody whom an identity provider has brought, and who has no account yet, for what a new one lacks.
// The answer has FieldFirstName, FieldLastName, FieldUserName, FieldEmail and FieldTerms.
type Register struct {
	Frame
	Provider  string
	As        string // what the provider calls the person
	FirstName string
	LastName  string
	UserName  string
	Email     string
	In        string // the organization that the account will be in
	Invited   bool   // the address is that of an invitation, and not to be changed
	Terms     Terms
	Existing  Link // to link an account that there is already, instead
	Other     Link // to sign in in another way
}

func (Register) about() about { return about{template: "register", title: "register.title"} }

// ChooseProvider asks somebody whom an address has led here whether they want to go on to an identity provider.
type ChooseProvider struct {
	Frame
	Of       string // the organization that the provider belongs to
	Provider Provider
	Other    Link // to sign in in another way; none: there is no other way
}

func (ChooseProvider) about() about {
	return about{template: "choose_provider", title: "chooseProvider.title"}
}

// ConfirmArrival asks somebody whom an address has led to an identity provider and back whether they want to sign in:
// DoAllow.
type ConfirmArrival struct {
	Frame
	Of        string // the organization that the account is in, or else the one that the provider belongs to
	Provider  string
	As        string // what the provider calls the person
	LoginName string // of the account that is linked; empty: there is none yet
	Others    string // who is signed in here; empty: nobody
	Other     Link   // to sign in in another way
}

func (ConfirmArrival) about() about {
	return about{template: "confirm_arrival", title: "confirmArrival.title"}
}

// Unlinked says that nobody is linked to whom a provider has brought. SignIn leads to signing in once to an account
// that is to be linked; none: that is not possible here.
type Unlinked struct {
	Frame
	Provider  string
	As        string
	Suspended bool // somebody is linked, and has to confirm it
	SignIn    Link
	Other     Link // to sign in in another way
}

func (v Unlinked) about() about {
	if v.Suspended {
		return about{template: "unlinked", title: "unlinked.suspended.title"}
	}
	return about{template: "unlinked", title: "unlinked.title"}
}

// ConfirmLink asks somebody who has just signed in whether the account at a provider is theirs: DoAllow or DoDeny.
type ConfirmLink struct {
	Frame
	LoginName string
	Other     Link // to choose another account
	Provider  string
	As        string
}

func (ConfirmLink) about() about { return about{template: "confirm_link", title: "confirmLink.title"} }

// SignedIn tells that the page is about somebody who is signed in.
func (ConfirmLink) SignedIn() bool { return true }

// ProveThrough asks somebody who has no password to sign in at a provider once more.
type ProveThrough struct {
	Frame
	LoginName string
	Other     Link // to choose another account
	Providers []Provider
}

func (ProveThrough) about() about {
	return about{template: "prove_through", title: "password.again.title"}
}

// SignedIn tells that the page is about somebody who is signed in.
func (ProveThrough) SignedIn() bool { return true }

// LinkedAccount is an account at a provider that the person signs in with.
type LinkedAccount struct {
	ID        string
	Provider  string // its name; empty: it has been removed
	As        string
	Added     time.Time
	Suspended bool // it has to be confirmed: DoConfirm with FieldID
	Confirm   bool // and can be, here and now
}

// ToApplication asks somebody whom a provider has brought whether they want to go on to an application that has a
// sign-in page of its own: DoAllow or DoDeny.
type ToApplication struct {
	Frame
	Name      string // of the application
	Provider  string
	As        string
	LoginName string // of the account here that is linked; empty: there is none
}

func (ToApplication) about() about {
	return about{template: "to_application", title: "toApplication.title", end: true}
}
