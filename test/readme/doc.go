// Package readme holds the README and the guides to their word: their commands are run as they stand there, from a
// clean copy of this repository.
package readme
