package api

// numberOf gives the number of a word; the zero number where there is none.
func numberOf[N, W comparable](words map[N]W, w W) (n N) {
	for number, word := range words {
		if word == w {
			return number
		}
	}
	return n
}
