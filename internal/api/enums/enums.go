// Package enums relates the numbers of the API to the words of the objects' packages.
package enums

// Number gives the number of a word; the zero number where there is none.
func Number[N, W comparable](words map[N]W, w W) (n N) {
	for number, word := range words {
		if word == w {
			return number
		}
	}
	return n
}
