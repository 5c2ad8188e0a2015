package idp

// Problem is something that is wrong with the configuration of a provider, found by trying it.
type Problem struct {
	Check, Message, Hint string
	Warning              bool // people can sign in all the same
}
