// Package oidc signs in to applications end to end: real OAuth clients against a server in this process, on both
// engines.
package oidc
