package files

// Decode returns the path of a request.
func Decode(raw []byte) (string, error) {
	r, err := decode(raw)
	if err != nil {
		return "", err
	}
	return r.path, nil
}
