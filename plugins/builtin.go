package plugins

import (
	_ "embed"
	"strings"
)

//go:generate go run ./internal/build
//go:generate go test ./builtin -run ^TestModuleDescribe$ -update

// Not compressed, because each start of the program that executes a step would decompress it.
//
//go:embed builtin.wasm
var module []byte

//go:embed builtin.sum
var sum string

//go:embed builtin.json
var manifest []byte

// Manifest returns the SHA-256 of the module in hex, and what its describe returns, so that
// a host knows the step types before it loads the module. The manifest must not be changed.
func Manifest() (digest string, describes []byte) {
	line, _, _ := strings.Cut(sum, "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, "module ")), manifest
}

// Builtin returns the module of the built-in step types, about 3 MB, which must not be changed.
// The error is nil; the field Wasm of a plugin source wants one.
func Builtin() ([]byte, error) { return module, nil }
