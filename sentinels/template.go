package sentinels

// Template returns a commented starter definition with the given name.
func Template(name string) ([]byte, error) { return nil, nil }
