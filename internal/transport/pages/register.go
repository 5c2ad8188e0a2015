package pages

// Terms are what a new person has to accept, and what is told beside it. A box that is ticked comes back in FieldTerms,
// with the address that was shown.
type Terms struct {
	Terms    Link // none: nothing has to be accepted
	Privacy  Link
	Accepted bool // the box is ticked
}

// RegisterEmail asks somebody who wants an account for an e-mail address: FieldEmail.
type RegisterEmail struct {
	Frame
	Email string
	Back  Link
}

func (RegisterEmail) about() about {
	return about{template: "register_email", title: "register.title"}
}

// RegisterMailSent says the same whether or not an account can be made with the address.
type RegisterMailSent struct {
	Frame
	Email string
	Back  Link
}

func (RegisterMailSent) about() about {
	return about{template: "register_mail_sent", title: "resetMailSent.title"}
}

// RegisterSelf asks somebody who has the mail for what an account needs: FieldFirstName, FieldLastName, FieldUserName,
// FieldTerms, and FieldNewPassword with FieldRepeatPassword. With DoPasskey a passkey takes the place of the password.
type RegisterSelf struct {
	Frame
	Email     string
	FirstName string
	LastName  string
	UserName  string
	Terms     Terms
	Password  bool // there can be one
	Passkey   bool // likewise
	Rules     PasswordRules
}

func (RegisterSelf) about() about {
	return about{template: "register_self", title: "register.title", script: true}
}

// RegisterPasskey has the browser make the first passkey of somebody. The answer has FieldCredential, FieldPasskeyName,
// and what RegisterSelf asked for.
type RegisterPasskey struct {
	Frame
	Email         string
	FirstName     string
	LastName      string
	UserName      string
	AcceptedTerms string
	Name          string
	Options       []byte // of the creation
	Back          Link
}

func (RegisterPasskey) about() about {
	return about{template: "register_passkey", title: "enrolPasskey.title", passkey: true}
}

// TermsRequired says that the box of the terms has to be ticked.
func TermsRequired() Message { return Message{key: "problem.termsRequired"} }
