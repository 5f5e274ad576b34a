package sentinels

// Suggest returns the candidates that a mistyped name was probably meant to be,
// best first, at most three.
func Suggest(name string, candidates []string) []string { return nil }
