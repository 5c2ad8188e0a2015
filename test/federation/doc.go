// Package federation runs signing in through other identity providers against a provider that nobody here wrote: npm
// oidc-provider, with its quirks one by one.
package federation
