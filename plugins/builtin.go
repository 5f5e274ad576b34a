package plugins

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"strings"
)

//go:generate go run ./internal/build
//go:generate go test ./builtin -run ^TestModuleDescribe$ -update

//go:embed builtin.wasm.gz
var compressed []byte

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

// Builtin returns the module of the built-in step types, about 2 MB. Each call
// decompresses it again, because a process needs it at most once, when the first of its
// step types is used. Safe for concurrent use.
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
