// Package secret holds everything in Signet that must not be read by others: password hashes, bearer tokens, the
// master key and the data keys under it.
//
// What protects what:
//
//	password   -> argon2id hash          Hasher; slow on purpose, so its work is limited and queued
//	token      -> SHA-256                NewToken, ParseToken; random enough that a fast hash is safe
//	master key -> one key per purpose    MasterKey.MAC, MasterKey.Wrap; never used directly
//	master key -> data keys, one each    MasterKey.WrapDataKey; destroying a person's data key erases the person
//	data key   -> a person's data        DataKey.Seal
//
// Keys print as [secret] in every format, also as fields of other structs. No error of this package quotes a password,
// a hash, a token or a key. The package knows no database and no clock.
package secret
