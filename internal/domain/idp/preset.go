package idp

// filled adds what is known of a provider to what is left out.
func (o OIDC) filled() OIDC {
	issuer, scopes := "", []string{"profile", "email"}
	switch o.Preset {
	case GooglePreset:
		issuer = "https://accounts.google.com"
	case MicrosoftPreset:
		tenant := "organizations"
		if len(o.Tenants) == 1 {
			tenant = o.Tenants[0]
		}
		issuer = "https://login.microsoftonline.com/" + tenant + "/v2.0"
	case ApplePreset:
		issuer, scopes = "https://appleid.apple.com", []string{"name", "email"}
		o.FormPost = true // Apple gives the name and the address in no other way
		fill(&o.ClientAuth, SecretInBody)
	case GitLabPreset:
		issuer = "https://gitlab.com"
	default:
		return o
	}
	fill(&o.Issuer, issuer)
	if len(o.Scopes) == 0 {
		o.Scopes = scopes
	}
	return o
}

// filled adds what is known of a provider to what is left out.
func (o OAuth) filled() OAuth {
	if o.Preset != GitHubPreset {
		return o
	}
	// a server of one's own is named whole, or its secrets would go elsewhere
	if o.AuthorizationEndpoint+o.TokenEndpoint+o.UserEndpoint+o.EmailsEndpoint == "" {
		o.AuthorizationEndpoint, o.TokenEndpoint = "https://github.com/login/oauth/authorize",
			"https://github.com/login/oauth/access_token"
		o.UserEndpoint, o.EmailsEndpoint = "https://api.github.com/user", "https://api.github.com/user/emails"
	}
	fill(&o.Subject, "id")
	fill(&o.Claims.UserName, "login")
	fill(&o.ClientAuth, SecretInBody)
	if len(o.Scopes) == 0 {
		o.Scopes = []string{"read:user", "user:email"}
	}
	return o
}

// fill sets what is empty.
func fill[T comparable](field *T, value T) {
	var empty T
	if *field == empty {
		*field = value
	}
}

// styled gives the button the look that Google asks for, unless it has one.
func (g General) styled(preset Preset) General {
	if preset == GooglePreset {
		fill(&g.Styling, Google)
	}
	return g
}
