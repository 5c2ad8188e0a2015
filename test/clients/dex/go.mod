module github.com/signet-idm/signet/test/clients/dex

go 1.26.0

require github.com/dexidp/dex v0.0.0-20260806151424-ab64ed778070

require (
	github.com/coreos/go-oidc/v3 v3.19.0 // indirect
	github.com/go-jose/go-jose/v4 v4.1.4 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
)
