package plugins

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
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
	// The last four bytes are the size. The space for one read more finds the end, so that the
	// buffer does not grow: growing it costs as much time as decompressing.
	module := bytes.NewBuffer(make([]byte, 0, int(binary.LittleEndian.Uint32(compressed[len(compressed)-4:]))+bytes.MinRead))
	if _, err := module.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("read built-in plugin: %w", err)
	}
	return module.Bytes(), nil
}
