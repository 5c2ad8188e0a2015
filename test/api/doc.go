// Package api holds the contract tests of Signet's API. They know the service only from outside: a real server on a
// loopback port, asked over every content type (REST JSON, gRPC, gRPC-Web), on every database engine.
//
// # What is where
//
// TestAPI opens one server per engine and runs everything in the three lists of main_test.go against it:
//
//   - tables: functions that return Cases. A Case is one request and the answer it must get. It is sent over all
//     content types, and what they answer must be the same to the last violation.
//   - stories: several requests that belong together (set a password, sign in, …). A story is told once per content
//     type, with a Client for that type.
//   - checks: what is about one content type only, or about several at once. They run once per engine.
//
// Groups run in parallel and share the server, so each makes the objects it changes: World.scene gives an owner, a
// plain user and an identity provider of their own in an organization that is shared, World.newScene the same in a new
// organization, World.addUser one more user with any roles. Passwords are what costs time here: a set-up, a sign-in and
// a new password each take a hash, while scene and addUser take none.
//
// What holds for every answer (shape of errors, request id, deprecation, entity tags, scalars always present, …) is
// not repeated in cases: World.verify looks at each answer of the whole run. Likewise no case has to look for leaked
// secrets: passwords made by World.secret and all tokens are searched for in the database, the log and all answers at
// the end.
//
// # How to add a case
//
// Find the table that fits and append a line:
//
//	{Name: "a language of eleven characters", As: s.owner,
//		Req: with(profile(), "preferredLanguage", "elevenchars"), Want: invalid("preferredLanguage")},
//
// Req decides which operation is called. Start from a valid request and change one field with the function with, which
// takes the path of the field in JSON names; nil takes the field away. Header, where needed, is header("if-match",
// "3"). Want is ok, invalid(fields…), or refused(code, reason). A function Check looks at the answer more closely.
//
// # How to add an operation
//
// It is in the tests that are driven by the descriptors by itself: a valid request is made from its fields
// (generate_test.go), and who may send it follows from its rule (matrix_test.go). A test says so where the request made
// is not valid.
package api
