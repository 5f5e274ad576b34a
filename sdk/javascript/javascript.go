// Package javascript is HOW a step is done in JavaScript: an engine, the types
// and test helper of its authors, and the tool that puts a script into the engine.
//
// The engine, QuickJS compiled to WebAssembly, is in this package, so an author
// needs no toolchain: [Module] makes a plugin of a script in pure Go. See
// README.md for authors, engine/ for how the engine is made.
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

// SDK returns what a project gets in its folder sdk: the types that editors
// complete by, and the helper that its tests run steps with under node.
func SDK() fs.FS { return sdk }

// Template returns what a new project begins with.
func Template() fs.FS { return embedded.Folder(templates, "template") }

// engine is unpacked once a process.
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

// Digest names bytes by their content.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
