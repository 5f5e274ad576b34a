// Package toolchain builds step plugins from source: for each language with an
// SDK it knows the tools that are needed, the commands that build a module, and
// the files a new project begins with.
//
// A project is a folder with a plugin.json:
//
//	{"language": "rust", "name": "json_diff"}
//
// It holds a copy of its language's SDK in the folder sdk, so that it builds
// without a network and goes on building when the SDK changes.
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

// A Language is one that plugins can be written in. Its file in this package is
// the only place that knows how it is built.
type Language struct {
	Name    string   // "go", "rust", "c", "assemblyscript", "javascript"
	Aliases []string // other words for it: "js"
	Source  string   // the file people edit, "plugin.rs"
	// Tools are the programs that a build starts, in the order in which they are
	// looked for. None means that this program alone is enough.
	Tools []Tool
	// Local is the folder of a project that may hold tools of its own, which
	// count first: "node_modules/.bin". Empty for none.
	Local string
	// SDK is what a project gets in its folder sdk; nil for none.
	SDK fs.FS
	// Template is what a new project begins with. In file names and contents
	// {{name}} stands for the plugin's name; the ending .tmpl is left off, for
	// files that the Go toolchain must not take for its own.
	Template fs.FS
	// probe is the smallest project that needs every part of the toolchain, by
	// file name. Its folder sdk is its own, so no SDK is compiled.
	probe map[string]string
	// build makes the module of the project in dir and writes it to out.
	build func(ctx context.Context, dir, out string, say io.Writer) error
}

// A Tool is a program that a build needs.
type Tool struct {
	Name string // "wasm-ld"
	// Try are the names or paths to look for, the first that is there counts.
	Try []string
	// Install is what a person types to get it on Debian.
	Install string
}

// Path returns where the tool is.
func (t Tool) Path() (string, error) {
	for _, name := range t.Try {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	var names []string // the folders beside, too, would make a long list that helps nobody
	for _, name := range t.Try {
		if !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return "", fmt.Errorf("find %s: no %s in PATH; install it with: %s", t.Name, strings.Join(names, " or "), t.Install)
}

// languages are all there are, in the order in which people are shown them.
// Each is a variable of the file named like it.
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
	return Language{}, fmt.Errorf("find language %q: there is %s", name, strings.Join(names, ", "))
}

// Missing returns an error that names every tool which a build in this language
// needs and this machine lacks, nil if there is none.
func (l Language) Missing() error { return l.MissingIn("") }

// MissingIn is Missing for the project in dir, which may have tools of its own.
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

// Build makes the module of the project in dir and writes it to out. What the
// tools say goes to say.
func (l Language) Build(ctx context.Context, dir, out string, say io.Writer) error {
	if err := l.MissingIn(dir); err != nil {
		return err
	}
	return l.build(ctx, dir, out, say)
}
