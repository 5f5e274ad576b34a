package plugins

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

//go:generate go run ./internal/build

//go:embed builtin.wasm.gz
var compressed []byte

// Builtin returns the module of the built-in step types, decompressed anew by each
// call: engines compile it when they open, and a host that then runs for days does
// not need its 2 MB. Safe for concurrent use.
func Builtin() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("read built-in plugin: %w", err)
	}
	module, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read built-in plugin: %w", err)
	}
	return module, nil
}
