// Package assemblyscript embeds the SDK for step plugins in AssemblyScript, TypeScript's
// syntax compiled to WebAssembly: the SDK that is copied to a project, and the template
// of a new project. README.md is for authors.
//
// Its package.json pins the compiler: npm ci --prefix sdk/assemblyscript.
package assemblyscript

import (
	"embed"
	"io/fs"

	"github.com/sentinel-runtime/sentinel/sdk/internal/embedded"
)

//go:embed sentinel
var sdk embed.FS

//go:embed all:template
var template embed.FS

// SDK returns the files of a project's folder sdk.
func SDK() fs.FS { return embedded.Folder(sdk, "sentinel") }

// Template returns the files of a new project, with {{name}} for its name.
func Template() fs.FS { return embedded.Folder(template, "template") }
