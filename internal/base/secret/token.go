package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math/bits"
	"slices"
)

// TokenKind says what a token is for. It is part of the token.
type TokenKind string

// The kinds of tokens. Those of sessions and personal access tokens are sent as bearer.
const (
	Session      TokenKind = "ses" // made by a sign-in
	PAT          TokenKind = "pat" // a personal access token
	Client       TokenKind = "sec" // secret of a service user or an application, worth nothing as a bearer token
	Access       TokenKind = "oat" // access token of an application
	Refresh      TokenKind = "ort" // refresh token of an application, worth nothing as a bearer token
	Code         TokenKind = "cod" // authorization code or device code, worth nothing as a bearer token
	Invitation   TokenKind = "inv" // link of an invitation, or to set a password; worth nothing as a bearer token
	Registration TokenKind = "reg" // in the mail to somebody who registers, worth nothing as a bearer token
	Device       TokenKind = "dev" // a device that is remembered, worth nothing as a bearer token
)

// kinds are all of them.
var kinds = []TokenKind{Session, PAT, Client, Access, Refresh, Code, Invitation, Registration, Device}

// A token is sgn_, the kind, _, 256 random bits and a checksum of all that, both in base 62:
//
//	sgn_ses_0DzA…43 digits…6 digits
//
// The prefix lets secret scanners find leaked tokens, and the checksum lets them and us dismiss what only looks alike.
const (
	tokenPrefix   = "sgn_"
	tokenHead     = len(tokenPrefix) + 3 + 1 // up to the second underscore
	tokenRandom   = 43                       // 62^43 > 2^256
	tokenChecksum = 6                        // 62^6 > 2^32
	tokenLength   = tokenHead + tokenRandom + tokenChecksum

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewToken makes a token. The token is shown to its owner once; hash, its SHA-256, is what is stored. A fast
// hash is enough because 256 random bits cannot be guessed. It panics for a kind that is not declared here.
func NewToken(kind TokenKind) (token string, hash []byte) {
	if !slices.Contains(kinds, kind) {
		panic("secret: unknown kind of token")
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails: crypto/rand ends the program instead
	t := encodeToken(kind, random)
	sum := sha256.Sum256(t[:])
	return string(t[:]), sum[:]
}

// ParseToken returns the kind of a token and the hash to look it up by. ok is false for everything that NewToken
// cannot have made, so that typing errors and guesses cost no query. It says nothing about the token being known.
func ParseToken(s string) (kind TokenKind, hash []byte, ok bool) {
	if len(s) != tokenLength || s[:len(tokenPrefix)] != tokenPrefix || s[tokenHead-1] != '_' {
		return "", nil, false
	}
	known := slices.Index(kinds, TokenKind(s[len(tokenPrefix):tokenHead-1]))
	if known < 0 {
		return "", nil, false
	}
	var t [tokenLength]byte
	copy(t[:], s)
	for _, c := range t[tokenHead:] {
		if !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
			return "", nil, false
		}
	}
	if checksum(t[:tokenHead+tokenRandom]) != [tokenChecksum]byte(t[tokenHead+tokenRandom:]) {
		return "", nil, false
	}
	sum := sha256.Sum256(t[:])
	return kinds[known], sum[:], true
}

func encodeToken(kind TokenKind, random [32]byte) (t [tokenLength]byte) {
	copy(t[:], tokenPrefix)
	copy(t[len(tokenPrefix):], kind)
	t[tokenHead-1] = '_'

	// Long division by 62, from the last digit to the first.
	var number [4]uint64
	for i := range number {
		number[i] = binary.BigEndian.Uint64(random[8*i:])
	}
	for i := tokenRandom - 1; i >= 0; i-- {
		var digit uint64
		for j := range number {
			number[j], digit = bits.Div64(digit, number[j], 62)
		}
		t[tokenHead+i] = base62[digit]
	}

	sum := checksum(t[:tokenHead+tokenRandom])
	copy(t[tokenHead+tokenRandom:], sum[:])
	return t
}

func checksum(head []byte) (sum [tokenChecksum]byte) {
	n := crc32.ChecksumIEEE(head)
	for i := tokenChecksum - 1; i >= 0; i-- {
		sum[i] = base62[n%62]
		n /= 62
	}
	return sum
}

// Digest is what is stored of a text that nobody can guess: its SHA-256, in hexadecimal.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
