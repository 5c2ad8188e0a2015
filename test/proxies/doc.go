// Package proxies tests that what Signet answers arrives behind the proxies that people put in front of it: nginx,
// HAProxy, Caddy and Apache, as Debian ships them, with the configurations of docs/operations/proxies.
package proxies
