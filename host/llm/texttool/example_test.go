package texttool_test

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/llm/texttool"
)

func ExampleParse() {
	calls, rest := texttool.Parse("I will look.\n```json\n"+
		`{"tool": "code/read", "arguments": {"path": "a.go"}}`+"\n```\n", []string{"code/read"})
	fmt.Printf("%s %s\n%q\n", calls[0].Name, calls[0].Arguments, rest)
	// Output:
	// code/read {"path": "a.go"}
	// "I will look."
}
