// Package sdk is the library for writing step plugins in Go.
//
// A plugin is a Go main package built with the standard toolchain,
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o shout.wasm
//
// whose init passes a [Plugin] to [Main]; main itself is never called:
//
//	func init() { sdk.Main(plugin) }
//	func main() {}
//
// A step's Run is plain blocking code: it calls the host through its [Context],
// gets an answer and returns. The host makes that durable by replay: it executes
// Run again with the recorded answers. So the calls of Run must depend only on its
// input and on the answers: no map order, no clock but [Context.Now], no package
// variables that change.
//
// The package links neither reflection nor encoding/json, which would double
// the size of a guest; [Value] is its JSON. The same code builds natively, where
// package sdktest tests steps. ABI.md in this folder specifies the interface.
package sdk
