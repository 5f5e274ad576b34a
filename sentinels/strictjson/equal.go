package strictjson

import (
	"bytes"
	"encoding/json"
)

// Equal reports whether two texts are the same JSON value: the order of keys and
// white space do not count. Numbers are equal if they are written the same.
func Equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	ca, errA := canonical(a)
	cb, errB := canonical(b)
	return errA == nil && errB == nil && bytes.Equal(ca, cb)
}

// canonical returns JSON with sorted keys and without white space; numbers stay
// as they are written.
func canonical(b []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
