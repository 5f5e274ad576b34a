//go:build !wasip1

package sdk

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

// A guest must not contain its own sources, so only native builds do.
//
//go:embed *.go abi/*.go internal/jsondiff/*.go role/*.go sdktest/*.go ABI.md
var source embed.FS

// Source returns the files of this SDK without its tests. A new project gets a copy of
// them. Only a native build has this function.
func Source() fs.FS { return sourceFiles{source} }

// sourceFiles hides the files that a copy does not need: the tests of the SDK, and
// this file, which would embed the copy again.
type sourceFiles struct{ embed.FS }

func (f sourceFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.FS.ReadDir(name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasSuffix(e.Name(), "_test.go") || e.Name() == "source_native.go"
	}), err
}
