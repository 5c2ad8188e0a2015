// Package hosted holds tests of the hosted pages as a browser without script meets them, on a running server.
package hosted
