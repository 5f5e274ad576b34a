package toolchain

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk/c"
)

// cInstall is what a person types. Debian names the compiler's own library after
// its version: libclang-rt-14-dev-wasm32 in 12, libclang-rt-19-dev-wasm32 in 13.
const cInstall = "apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32 (Debian 13: -19-)"

var clang = Tool{Name: "clang", Try: []string{"clang", "clang-19", "clang-14"}, Install: cInstall}

// cLinker is started by clang, whose error for a missing linker is unclear.
var cLinker = Tool{Name: "wasm-ld", Try: []string{"wasm-ld", "wasm-ld-19", "wasm-ld-14"}, Install: cInstall}

// clanguage is C with clang and wasi-libc.
var clanguage = Language{
	Name:     "c",
	Source:   "plugin.c",
	Tools:    []Tool{clang, cLinker},
	SDK:      c.SDK(),
	Template: c.Template(),
	// memcpy needs wasi-libc, the conversion of a long double the compiler's own
	// library.
	probe: map[string]string{
		"sdk/.keep": "",
		"plugin.c": `#include <string.h>
__attribute__((export_name("f"))) double f(char *a, const char *b, long double d) {
	memcpy(a, b, strlen(b));
	return (double)d;
}
`},
	build: buildC,
}

// buildC compiles every .c file of the project and the SDK, one by one, and
// links them. The link has no -O, for which clang would start a wasm-opt that
// happens to be installed: other bytes on another machine.
func buildC(ctx context.Context, dir, out string, say io.Writer) error {
	compiler, err := clang.Path()
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	objects, err := os.MkdirTemp("", "plugin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(objects)
	return withSDK(dir, c.SDK(), func(dir string) error {
		run := func(args ...string) error {
			cmd := exec.CommandContext(ctx, compiler, append([]string{"--target=wasm32-wasi"}, args...)...)
			cmd.Dir = dir
			cmd.Stdout, cmd.Stderr = say, say
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("clang: %w", err)
			}
			return nil
		}
		link := []string{"-mexec-model=reactor", "-Wl,--strip-all", "-Wl,--stack-first", "-Wl,-z,stack-size=65536", "-o", out}
		sources, err := cSources(dir)
		if err != nil {
			return err
		}
		for i, source := range sources {
			object := filepath.Join(objects, strconv.Itoa(i)+".o")
			if err := run("-std=c11", "-Oz", "-Wall", "-I.", "-c", "-o", object, source); err != nil {
				return err
			}
			link = append(link, object)
		}
		return run(link...)
	})
}

// cSources returns what is compiled, relative to the project: its own folder and
// the SDK, not its tests. They are sorted, so the link has one order.
func cSources(dir string) ([]string, error) {
	var sources []string
	for _, folder := range []string{".", "sdk"} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) == ".c" {
				sources = append(sources, filepath.Join(folder, e.Name()))
			}
		}
	}
	return sources, nil
}
