//go:build race

package costtest

// slower is how many times as long everything takes when races are looked for: it is done with that much less.
const slower = 20
