package step

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

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
// [strictjson.Equal].
func requestHash(function string, request []byte) string {
	return digest(function, string(request))
}

// ExecutionKey is the idempotency key of a step execution, equal for all attempts.
func ExecutionKey(id sentinels.RunID, iteration int, path string) string {
	return digest(string(id), strconv.Itoa(iteration), path)
}

// CallKey is the idempotency key of a host call of a step execution, equal for all
// attempts.
func CallKey(executionKey string, seq int) string { return digest(executionKey, strconv.Itoa(seq)) }
