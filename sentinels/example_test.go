package sentinels_test

import (
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

func ExampleDecode() {
	types, err := sentinels.NewTypeSet([]sentinels.TypeSpec{{
		Type:   "say",
		Infer:  []string{"text"},
		Fields: json.RawMessage(`{"type": "object", "properties": {"text": {"type": "string"}, "loud": {"type": "boolean"}}}`),
	}})
	if err != nil {
		panic(err)
	}
	_, problems := sentinels.Decode([]byte(`{
  "name": "greet", // comments are fine
  "steps": [{"text": "hello", "lowd": true}],
  "loop": {"type": "continuous"}
}`), sentinels.DecodeOptions{File: "greet.json", Types: types})
	for _, p := range problems {
		fmt.Println(p)
		fmt.Println("  hint:", p.Hint)
	}
	// Output:
	// greet.json:3:31: steps[0].lowd: unknown key "lowd"
	//   hint: did you mean "loud"?
	// greet.json:4:11: loop: a loop of type "continuous" is unbounded: set maxIterations or timeoutMs
	//   hint: add "timeoutMs", or "maxIterations" in "safety"
}
