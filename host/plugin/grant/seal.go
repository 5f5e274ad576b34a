package grant

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Seal is the result of checking an entry's seal.
type Seal string

// The worths of a seal.
const (
	None Seal = ""       // without an entry
	Good Seal = "sealed" // this user made the entry, in this folder
	Bad  Seal = "broken" // by another key, or edited afterwards
)

// seal is the keyed hash over all fields of an entry, the plugin that it is
// for and the folder that it is in. Each part is preceded by its length, so that
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
