package idp

// Identity is a person as a provider tells of them, once everything that the provider sent has been checked.
type Identity struct {
	// Provider, its organization, its Standing.Epoch and its Changer.Version of the moment of the check.
	Provider string `json:"provider"`
	Org      string `json:"org"`
	Epoch    int64  `json:"epoch,omitempty"`
	Version  int64  `json:"version,omitempty"`

	// Issuer and Subject say who it is, exactly as sent, and nothing else does.
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`

	UserName      string `json:"userName,omitempty"`
	FirstName     string `json:"firstName,omitempty"`
	LastName      string `json:"lastName,omitempty"`
	NickName      string `json:"nickName,omitempty"`
	Language      string `json:"language,omitempty"`
	Email         string `json:"email,omitempty"`
	EmailVerified bool   `json:"emailVerified,omitempty"` // the provider says so, and its word counts

	Tenant  string   `json:"tenant,omitempty"`  // of a provider shared by many companies
	Methods []string `json:"methods,omitempty"` // amr
	Session string   `json:"session,omitempty"` // sid: what the provider ends by back-channel logout

	// Proven is when the person proved to the provider who they are, as it says, in microseconds; zero: it does not
	// say, or not plausibly.
	Proven int64 `json:"proven,omitempty"`
	// Fresh: the provider was asked to have the person prove again who they are, and says that they just did.
	Fresh bool `json:"fresh,omitempty"`
}
