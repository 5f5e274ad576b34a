package plugins_test

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/plugins"
)

// An embedder passes the module to the runtime as a plugin source.
func ExampleBuiltin() {
	module, err := plugins.Builtin()
	fmt.Printf("%q %v\n", module[:4], err)
	// Output: "\x00asm" <nil>
}
