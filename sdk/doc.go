// Package sdk is HOW a step is done: what the author of a step plugin imports.
//
// A plugin is a Go main package built with the standard toolchain,
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o shout.wasm
//
// whose init hands a [Plugin] to [Main]; main itself never runs:
//
//	func init() { sdk.Main(plugin) }
//	func main() {}
//
// A step's Run is plain blocking code. It calls the host through its [Context],
// gets an answer and returns; the host makes that durable by running it again
// with the answers it already had, so what Run asks for must depend on nothing
// but its input and the answers: no map order, no clock but [Context.Now], no
// package variables that change.
//
// The package links neither reflection nor encoding/json, which would double
// the size of a guest; [Value] is its JSON. The same code builds natively, where
// package sdktest plays the host. ABI.md beside this file is the contract below.
package sdk
