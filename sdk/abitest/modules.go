package abitest

import "embed"

// The kit's own guests are texts in hostile and guests, the module beside each;
// after a change go generate makes the modules anew with wat2wasm of the WebAssembly
// binary toolkit. The texts are bodies: modules_test.go says what is put around
// them.
//
//go:generate go test -run TestModules -update
//go:embed hostile/*.wasm guests/*.wasm
var modules embed.FS

// module returns one of the kit's own guests.
func module(file string) []byte {
	b, err := modules.ReadFile(file + ".wasm")
	if err != nil {
		panic("abitest: " + err.Error())
	}
	return b
}
