package plugins

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"sync"
)

//go:generate go run ./internal/build

//go:embed builtin.wasm.gz
var compressed []byte

var builtin = sync.OnceValues(func() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("read built-in plugin: %w", err)
	}
	module, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read built-in plugin: %w", err)
	}
	return module, nil
})

// Builtin returns the module of the built-in step types. It is decompressed
// once and shared: do not change it. Safe for concurrent use.
func Builtin() ([]byte, error) { return builtin() }
