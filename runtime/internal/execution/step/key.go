package step

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// digest returns the first 16 bytes of digestSum in hexadecimal.
func digest(parts ...string) string {
	sum := digestSum(parts...)
	return hex.EncodeToString(sum[:16])
}

// digestSum hashes the parts, each preceded by its length. It does not copy bytes.
func digestSum[part string | []byte](parts ...part) (sum [sha256.Size]byte) {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	h.Sum(sum[:0])
	return sum
}

// requestHash returns the hash that identifies a host call on replay. Requests with
// other hashes may still be equal in value, see [strictjson.Equal].
func requestHash(function string, request []byte) string {
	sum := digestSum([]byte(function), request)
	return hex.EncodeToString(sum[:16])
}

// ExecutionKey returns the idempotency key of a step execution, the same for all
// attempts.
func ExecutionKey(id sentinels.RunID, iteration int, path string) string {
	return digest(string(id), strconv.Itoa(iteration), path)
}

// CallKey returns the idempotency key of a host call, the same for all attempts of its
// step.
func CallKey(executionKey string, seq int) string { return digest(executionKey, strconv.Itoa(seq)) }

// RunKey returns the start key of a run that the work of a host call starts. caller is the
// key of the call in its attempt, and part distinguishes the runs of one call; that of a
// command has none.
func RunKey(caller, part string) string { return digest(caller, part) }
