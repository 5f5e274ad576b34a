package data

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Ids and collections are safe as file names and in addresses: no separator,
// no leading dot, ASCII only. No collection of a caller has a dot in its name;
// those with one are bookkeeping, out of every caller's reach.
var (
	validCollection = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	validID         = lazyregexp.New(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?$`)
)

func checkCollection(op, name string) error {
	if validCollection.MatchString(name) {
		return nil
	}
	return badName(op, "collection", name, "a letter, then letters, digits, _ and -, at most 64")
}

func checkID(op, id string) error {
	if validID.MatchString(id) {
		return nil
	}
	return badName(op, "id", id, "letters, digits, _, - and inner dots, at most 128")
}

func badName(op, field, name, hint string) error {
	return &abi.Error{
		Code: abi.BadFields, Permanent: true, Field: field, Hint: hint,
		Message: fmt.Sprintf("%s: field %q: %.80q is not allowed", op, field, name),
	}
}

// madeID is the id of a document whose creator named none: every repetition of
// one call, which has the same key, gets the same id. A call without a key,
// such as a person's, gets a new one each time.
func madeID(key string) string {
	if key == "" {
		return "d-" + strings.ToLower(rand.Text())
	}
	return "d-" + digest(key)[:26]
}

// digest is the hash under which a call's key is kept; keys themselves may
// hold bytes that ids may not.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}
