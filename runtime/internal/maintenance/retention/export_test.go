package retention

// Digests returns the digests that a text may name.
func Digests(text string) (list []string) {
	eachDigest([]byte(text), func(d digest) { list = append(list, d.String()) })
	return list
}
