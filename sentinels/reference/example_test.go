package reference_test

import (
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

func ExampleResolve() {
	variables := map[string]string{"review": `{"text": "two bugs", "usage": {"tokens": 12}}`}
	lookup := func(name string) (json.RawMessage, bool) {
		value, ok := variables[name]
		return json.RawMessage(value), ok
	}
	out, notes, err := reference.Resolve(json.RawMessage(`{"message": "Found: $review", "cost": "$review.usage.tokens", "to": "$room"}`), lookup)
	fmt.Println(string(out), notes.Unknown, err)
	// Output: {"message":"Found: two bugs","cost":12,"to":"$room"} [$room] <nil>
}
