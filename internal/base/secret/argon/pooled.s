//go:build !argon_library

// Empty: with an assembly file in the package, the compiler accepts functions without a body.
