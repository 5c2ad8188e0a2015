package proof

// RememberChains sets how many chains Verify remembers, and gives back what it was.
func RememberChains(n int) (before int) {
	before, maxEnds = maxEnds, n
	return before
}
