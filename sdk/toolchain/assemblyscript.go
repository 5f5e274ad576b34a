package toolchain

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/assemblyscript"
)

// asc is AssemblyScript's compiler. npm installs it for a project, for this repository,
// or globally.
var asc = Tool{
	Name: "asc", Try: ascPaths(),
	Install: "apt-get install nodejs npm, then npm install in the project, or npm install -g assemblyscript@0.28.20",
}

// node runs the compiler, whose file only names it.
var node = Tool{Name: "node", Try: []string{"node", "nodejs"}, Install: "apt-get install nodejs (20 or newer)"}

// ascPaths are relative to the current folder and up to four above it, which is
// how deep the projects of this repository lie.
func ascPaths() []string {
	var paths []string
	for up := range 5 {
		here := strings.Repeat("../", up)
		paths = append(paths, "./"+here+"node_modules/.bin/asc", "./"+here+"sdk/assemblyscript/node_modules/.bin/asc")
	}
	return append(paths, "asc")
}

// assemblyscriptLang is AssemblyScript with its compiler from npm.
var assemblyscriptLang = Language{
	Name:     "assemblyscript",
	Aliases:  []string{"as", "ts", "typescript"},
	Source:   "plugin.ts",
	Tools:    []Tool{node, asc},
	Local:    "node_modules/.bin",
	SDK:      assemblyscript.SDK(),
	Template: assemblyscript.Template(),
	probe: map[string]string{
		"plugin.ts":      "export function f(n: i32): string { return n.toString(); }\n",
		"sdk/exports.ts": "export * from \"./abort\";\n",
		"sdk/abort.ts":   "export function abort(message: string | null, file: string | null, line: u32, column: u32): void { unreachable(); }\n",
	},
	build: buildAssemblyScript,
}

// buildAssemblyScript compiles plugin.ts, which registers what it provides, beside
// the SDK's file of exports: all that both export is exported by the module.
func buildAssemblyScript(ctx context.Context, dir, out string, say io.Writer) error {
	compiler, err := ascOf(dir)
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	// A copy has no npm packages, so it gets their path.
	packages, err := filepath.Abs(filepath.Join(dir, "node_modules"))
	if err != nil {
		return err
	}
	return withSDK(dir, assemblyscript.SDK(), func(dir string) error {
		cmd := exec.CommandContext(ctx, compiler, "plugin.ts", "sdk/exports.ts", "-O3", "--runtime", "incremental",
			"--use", "abort=sdk/abort/abort", "--path", packages, "-o", out)
		cmd.Dir = dir
		cmd.Stdout, cmd.Stderr = say, say
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("asc: %w", err)
		}
		return nil
	})
}

// ascOf returns the compiler that a project brings itself, else the one that is
// found from the current folder, as an absolute path.
func ascOf(dir string) (string, error) {
	path, err := exec.LookPath(filepath.Join(dir, "node_modules", ".bin", "asc"))
	if err != nil {
		if path, err = asc.Path(); err != nil {
			return "", err
		}
	}
	return filepath.Abs(path)
}
