//go:build !race

package costtest

const slower = 1
