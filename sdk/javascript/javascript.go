// Package javascript builds step plugins in JavaScript. It has an engine, the types and
// the test helper for authors, and inserts a script in the engine.
//
// The engine, QuickJS compiled to WebAssembly, is embedded in this package, so that
// authors need no toolchain: [Module] builds a plugin from a script in pure Go. README.md
// is for authors, engine/ has the sources of the engine.
package javascript

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/sentinel-runtime/sentinel/sdk/internal/embedded"
)

//go:embed sentinel.d.ts testing.mjs engine/prelude.js
var sdk embed.FS

//go:embed all:template
var templates embed.FS

//go:embed engine/engine.wasm.gz
var packed []byte

// SDK returns the files of a project's folder sdk: the types for editors, and the helper
// for tests under node.
func SDK() fs.FS { return sdk }

// Template returns the files of a new project.
func Template() fs.FS { return embedded.Folder(templates, "template") }

// engine is unpacked once per process.
var engine = sync.OnceValues(func() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack engine: %w", err)
	}
	module, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("unpack engine: %w", err)
	}
	return module, nil
})

// Digest returns the SHA-256 of bytes.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
