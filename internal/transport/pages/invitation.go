package pages

// Invitation says who invites to what, and lets the person choose how to join.
type Invitation struct {
	Frame
	Inviter string // empty: nobody who can be named
	To      string // the organization
	Email   string
	// Account is who is signed in here already; empty: nobody. Accept goes on with that account.
	Account   string
	Accept    Link
	Password  Link // to a new account with a password; none: that is not allowed there
	Passkey   Link
	Providers []Provider
	More      MoreProviders
	SignIn    Link // to an account that there is already
}

func (Invitation) about() about { return about{template: "invitation", title: "invitation.title"} }

// JoinPassword asks for what a new account needs. The answer has FieldFirstName, FieldLastName, FieldUserName,
// FieldNewPassword and FieldRepeatPassword.
type JoinPassword struct {
	Frame
	Email               string
	FirstName, LastName string
	UserName            string
	Rules               PasswordRules
	Back                Link
}

func (JoinPassword) about() about {
	return about{template: "join_password", title: "register.title", script: true}
}

// JoinPasskey asks for the names first and then, with Options, has the browser make a passkey. The answer has the
// names, and FieldCredential at last.
type JoinPasskey struct {
	Frame
	Email               string
	FirstName, LastName string
	UserName            string
	Options             []byte // of the creation; nil: the names are asked for
	Back                Link
}

func (v JoinPasskey) about() about {
	return about{template: "join_passkey", title: "register.title", passkey: len(v.Options) > 0}
}

// JoinAccount asks somebody who is signed in whether to join with this account: DoAllow with FieldID, which is the
// session.
type JoinAccount struct {
	Frame
	ID        string
	LoginName string
	To        string // the organization
	Email     string
	Roles     []string // that the person gets there, as the API names them
	Custom    []CustomRole
	Mismatch  bool // the invited address is not that of the account
	Password  Link // to a new password, which the person needs first; none: not needed
	Other     Link // to sign in with another account
	Back      Link
}

func (JoinAccount) about() about { return about{template: "join_account", title: "joinAccount.title"} }

// SignedIn tells that the page is about somebody who is signed in.
func (JoinAccount) SignedIn() bool { return true }

// Joined says that somebody is in an organization now.
type Joined struct {
	Frame
	To      string
	Product string // the name of the application that they can use now; empty: none
	Next    Link   // empty: nothing leads on
}

func (Joined) about() about { return about{template: "joined", title: "joined.title"} }

// SetPassword asks somebody for a password whom an administrator has sent a link. The answer has FieldNewPassword and
// FieldRepeatPassword.
type SetPassword struct {
	Frame
	LoginName string
	Rules     PasswordRules
}

func (SetPassword) about() about {
	return about{template: "set_password", title: "setPassword.title", script: true}
}
