// Package event is the log, and the state that folds out of it.
//
// Every change to an object (an organization, a user, an identity provider, …) is a fact, recorded as an Event that
// is never altered. Folding an object's events in order gives its state. The two are written in one transaction, so a
// read right after a write sees it, and folding the whole log again gives the same bytes.
//
// How a change happens:
//
//  1. An object's package makes a Command: the objects it writes, those it only reads, the claims, rows and tokens it
//     looks at, and a function that decides. Deciding does no I/O: it sees states and answers with facts or an error.
//  2. The Store queues commands and takes whatever waits as one batch: it loads everything they name, lets each
//     decide in turn (Batch, here), and writes what they decided in one transaction. A command that refuses,
//     refuses alone.
//  3. The caller is answered once the transaction is durable.
//
// Objects describe themselves with a Schema: their facts, how these fold, which columns find them and which names
// they claim. Facts keep personal data in a field called Personal; it is sealed under a key of the person, so that
// destroying the key erases it while the log stays complete.
//
// This package knows no SQL. Package store implements Store; storetest holds every engine to the same promises.
package event
