package grant

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Seal says what an entry's seal is worth.
type Seal string

// The worths of a seal.
const (
	None Seal = ""       // there is no entry
	Good Seal = "sealed" // this user made the entry, in this folder
	Bad  Seal = "broken" // somebody else did, or it was edited
)

// seal is the keyed hash over everything that an entry says, the plugin it says
// it of and the folder it says it in. Each part has its length in front, so that
// none can pass for a piece of another.
func (e Entry) seal(key []byte, place string) string {
	e.Seal = ""
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // it is made of texts, numbers and times
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{"sentinel grant 1", place, e.Name, string(text)} {
		fmt.Fprintf(mac, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// sealedWith reports whether the entry was sealed with a key in a place.
func (e Entry) sealedWith(key []byte, place string) bool {
	return e.Seal != "" && hmac.Equal([]byte(e.Seal), []byte(e.seal(key, place)))
}
