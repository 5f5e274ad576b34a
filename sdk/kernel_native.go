//go:build !wasip1

package sdk

// Outside a module there is no host: a native build is for tests, which provide a
// [Caller]. The names below replace the imports of kernel_wasip1.go.

type hostFunc func()

var importCommand, importLLM, importWatch, importEval, importVar, importBlock, importSpawn,
	importEmit, importWait, importCheckpoint, importHTTP, importLog, importNow, importFile hostFunc

// load returns a block, which only tests have.
func load(handle uint64) string { return blocks(handle) }

var blocks func(handle uint64) string

// callHost answers as a host without the function.
func callHost(hostFunc, string) string {
	return `{"error":{"code":"unavailable","message":"no host outside a plugin","hint":"use package sdktest"}}`
}
