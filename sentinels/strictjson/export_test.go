package strictjson

// CheckByToken is Check without its fast path.
func CheckByToken(text []byte, limits Limits) error { return check(text, limits.withDefaults()) }
