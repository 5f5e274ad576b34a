package grant

// Recode decodes a file and writes it again.
func Recode(src []byte) ([]byte, error) {
	d, err := decode(src)
	if err != nil {
		return nil, err
	}
	return encode(d)
}
