//go:build wasip1

package sdk

// The exports of a plugin, clause A1 of ABI.md. Importing this package is
// enough to have them.

//go:wasmexport describe
func exportDescribe() int32 { return finish(registered.Describe(), nil) }

//go:wasmexport run
func exportRun() int32 { return finish(registered.Run(input(), nil)) }

//go:wasmexport validate
func exportValidate() int32 { return finish(registered.Check(input())) }

// finish sets output or error and returns the status. It does not free the blocks,
// because the host reads them after the return.
func finish(output string, fault *Error) int32 {
	if fault != nil {
		kernelError(store(ErrorValue(fault).String()))
		return 1
	}
	kernelOutput(store(output), uint64(len(output)))
	return 0
}
