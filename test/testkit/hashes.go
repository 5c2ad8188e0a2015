package testkit

import "regexp"

// PasswordHash is how the hashes of passwords begin that this program makes or imports, up to eight characters of the
// salt. A shorter beginning is no sign of a hash in a database: that is full of random bytes, which are the dollar sign
// before the name of a user who is named scrypt, or all of $2a$, once in a while.
var PasswordHash = regexp.MustCompile(`\$argon2(i|d|id)\$v=[0-9]+\$m=[0-9]+,t=[0-9]+,p=[0-9]+\$[+/0-9A-Za-z]{8}` +
	`|\$(scrypt|7)\$ln=[0-9]+,r=[0-9]+,p=[0-9]+\$[+/0-9A-Za-z]{8}` +
	`|\$pbkdf2(-sha[0-9]+)?\$(i=)?[0-9]+(,l=[0-9]+)?\$[+./0-9A-Za-z]{8}` +
	`|\$2[abxy]?\$[0-9]{2}\$[./0-9A-Za-z]{8}`)
