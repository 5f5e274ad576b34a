package runtime

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

type ticket = *store.Ticket

// digest hashes parts, each with its length, to 32 hexadecimal digits.
func digest(parts ...string) string {
	sum := digestSum(parts...)
	return hex.EncodeToString(sum[:16])
}

func digestSum(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// requestHash is how a host call is recognised on replay. Equal texts have
// equal hashes; texts that differ only in their form are compared by
// [sameJSON].
func requestHash(function string, request []byte) string {
	return digest(function, string(request))
}

// sameJSON reports whether two texts are the same JSON value.
func sameJSON(a, b []byte) bool {
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
