//go:build !wasip1

package sdk

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

// A guest must not carry its own sources, so they are there natively only.
//
//go:embed *.go abi/*.go sdktest/*.go ABI.md
var source embed.FS

// Source returns the files of this SDK, tests left out: what a project of its
// own holds a copy of. A native build alone has it.
func Source() fs.FS { return sourceFiles{source} }

// sourceFiles leaves out what a copy has no use for: tests of the SDK itself
// and this file, which would embed the copy once more.
type sourceFiles struct{ embed.FS }

func (f sourceFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.FS.ReadDir(name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasSuffix(e.Name(), "_test.go") || e.Name() == "source_native.go"
	}), err
}
