// Package toolchain builds step plugins from source: for each language with an
// SDK it has the tools that are needed, the commands that build a module, and the files
// of a new project.
//
// A project is a folder with a plugin.json:
//
//	{"language": "rust", "name": "json_diff"}
//
// It has a copy of its language's SDK in the folder sdk, so that it builds without a
// network and does not depend on later changes of the SDK.
package toolchain

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Language is one in which plugins can be written. Its file in this package contains
// everything about its build.
type Language struct {
	Name    string   // "go", "rust", "c", "assemblyscript", "javascript"
	Aliases []string // other names: "js"
	Source  string   // the main source file, "plugin.rs"
	// Tools are the programs that a build starts, in the order of the search. Without
	// tools, the build needs no other program.
	Tools []Tool
	// Local is the folder of a project that may have its own tools, which are used
	// first: "node_modules/.bin". Empty for none.
	Local string
	// SDK has the files of a project's folder sdk; nil for none.
	SDK fs.FS
	// Template has the files of a new project. In file names and contents, {{name}} is
	// replaced by the plugin's name; the suffix .tmpl, for files that the Go toolchain
	// must ignore, is removed.
	Template fs.FS
	// probe is the smallest project that needs every part of the toolchain, by file
	// name. It has its own folder sdk, so that no SDK is compiled.
	probe map[string]string
	// build builds the module of the project in dir and writes it to out.
	build func(ctx context.Context, dir, out string, say io.Writer) error
}

// A Tool is a program that a build needs.
type Tool struct {
	Name string // "wasm-ld"
	// Try are the names or paths to try; the first that exists is used.
	Try []string
	// Install is the command that installs it on Debian.
	Install string
}

// Path returns the path of the tool.
func (t Tool) Path() (string, error) {
	for _, name := range t.Try {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	var names []string // without the paths, which would make a long list
	for _, name := range t.Try {
		if !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return "", fmt.Errorf("find %s: no %s in PATH; install it with: %s", t.Name, strings.Join(names, " or "), t.Install)
}

// languages are all languages, in the order in which they are displayed. Each is a
// variable in the file with its name.
var languages = []Language{golang, rustlang, clanguage, assemblyscriptLang, javascriptLang}

// Languages returns all languages with an SDK.
func Languages() []Language { return languages }

// Lookup finds a language by its name or an alias.
func Lookup(name string) (Language, error) {
	var names []string
	for _, l := range languages {
		if l.Name == name {
			return l, nil
		}
		for _, alias := range l.Aliases {
			if alias == name {
				return l, nil
			}
		}
		names = append(names, l.Name)
	}
	return Language{}, fmt.Errorf("find language %q: want one of %s", name, strings.Join(names, ", "))
}

// Missing returns an error with every tool that a build in this language needs and this
// machine does not have, nil if there is none.
func (l Language) Missing() error { return l.MissingIn("") }

// MissingIn is Missing for the project in dir, which may have its own tools.
func (l Language) MissingIn(dir string) error {
	var missing []string
	for _, t := range l.Tools {
		if l.Local != "" && dir != "" {
			if _, err := exec.LookPath(filepath.Join(dir, filepath.FromSlash(l.Local), t.Name)); err == nil {
				continue
			}
		}
		if _, err := t.Path(); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("build %s: %s", l.Name, strings.Join(missing, "; "))
	}
	return nil
}

// Build builds the module of the project in dir and writes it to out. The output of the
// tools is written to say.
func (l Language) Build(ctx context.Context, dir, out string, say io.Writer) error {
	if err := l.MissingIn(dir); err != nil {
		return err
	}
	return l.build(ctx, dir, out, say)
}
