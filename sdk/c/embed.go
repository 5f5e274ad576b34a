// Package c holds what step plugins in C are written with: the SDK that a
// project gets a copy of, and the files that a new one begins with.
package c

import (
	"embed"
	"io/fs"
)

//go:embed sentinel
var sdk embed.FS

//go:embed all:template
var template embed.FS

// SDK returns the sources of the SDK, which a project has in its folder sdk.
func SDK() fs.FS { return sub(sdk, "sentinel") }

// Template returns the files of a new project, with {{name}} for its name.
func Template() fs.FS { return sub(template, "template") }

// sub is a folder of embedded files. It is there, or the program was not built.
func sub(files fs.FS, dir string) fs.FS {
	inner, err := fs.Sub(files, dir)
	if err != nil {
		panic(err)
	}
	return inner
}
