package abitest

import "embed"

// The guests of the kit are WebAssembly texts in hostile and guests, each with its
// module beside it. After a change, go generate builds the modules with wat2wasm of the
// WebAssembly binary toolkit. The texts are bodies, to which modules_test.go adds a
// prelude.
//
//go:generate go test -run TestModules -update
//go:embed hostile/*.wasm guests/*.wasm
var modules embed.FS

// module returns a guest of the kit.
func module(file string) []byte {
	b, err := modules.ReadFile(file + ".wasm")
	if err != nil {
		panic("abitest: " + err.Error())
	}
	return b
}
