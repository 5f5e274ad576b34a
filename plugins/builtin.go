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

// Builtin returns the module of the built-in step types, about 2 MB. Each call
// decompresses it again, because a host needs it only once, when it opens its
// engine. Safe for concurrent use.
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
