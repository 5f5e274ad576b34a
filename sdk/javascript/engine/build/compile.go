package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// sources are the files of QuickJS that a plugin needs: the language without the
// library for files and processes.
var sources = []string{"quickjs.c", "libregexp.c", "libunicode.c", "cutils.c", "dtoa.c"}

// compileFlags: EMSCRIPTEN is the engine's word for a WebAssembly target, which has
// no threads; the check of the stack's depth works on it all the same. Without
// NDEBUG its assertions stay in: a broken engine must stop, not go on.
var compileFlags = []string{
	"--target=wasm32-wasi", "-O2", "-w", "-fvisibility=hidden",
	"-D_GNU_SOURCE", "-DEMSCRIPTEN", "-DCONFIG_STACK_CHECK", `-DCONFIG_VERSION="` + version + `"`,
}

// linkFlags: the stack is put below the data, so that an overrun is a trap and not
// silent damage. There is no -O, with which the driver would start wasm-opt on
// machines that have it, and the bytes would depend on that.
var linkFlags = []string{
	"--target=wasm32-wasi", "-mexec-model=reactor",
	"-Wl,-z,stack-size=1048576", "-Wl,--stack-first", "-Wl,--strip-all", "-Wl,-O2",
	"-Wl,--export=sentinel_script", "-Wl,--export=sentinel_script_capacity",
}

// compile builds the engine and returns its module.
func compile(dir, source string) ([]byte, error) {
	work, err := os.MkdirTemp("", "engine")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := writePrelude(filepath.Join(dir, "prelude.js"), filepath.Join(work, "prelude.h")); err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(work, "engine.wasm")
	link := append(slices.Clone(linkFlags), "-o", out)
	for _, name := range append([]string{filepath.Join(dir, "glue.c")}, sources...) {
		object := filepath.Join(work, filepath.Base(name)+".o")
		if !filepath.IsAbs(name) {
			name = filepath.Join(source, name)
		}
		args := append([]string{"-I" + filepath.Join(dir, "include"), "-I" + source, "-I" + work}, compileFlags...)
		if err := start(work, "clang", append(args, "-c", name, "-o", object)...); err != nil {
			return nil, err
		}
		link = append(link, object)
	}
	if err := start(work, "clang", link...); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// writePrelude writes prelude.js as a C array, without indents and comments: each
// fresh instance reads it.
func writePrelude(from, to string) error {
	src, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for line := range strings.Lines(string(src)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			text.WriteString(line + "\n")
		}
	}
	var c bytes.Buffer
	c.WriteString("static const unsigned char prelude[] = {")
	for i, b := range append(text.Bytes(), 0) {
		if i%24 == 0 {
			c.WriteByte('\n')
		}
		fmt.Fprintf(&c, "%d,", b)
	}
	c.WriteString("\n};\n")
	return os.WriteFile(to, c.Bytes(), 0o600)
}

// toolVersions names all that decides the engine's bytes beside its sources.
func toolVersions() (string, error) {
	out, err := exec.Command("clang", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("find clang: %w; on Debian: apt-get install -y clang lld wasi-libc libclang-rt-14-dev-wasm32", err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	libc, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "wasi-libc").Output()
	if err != nil {
		return "", fmt.Errorf("find wasi-libc: %w; on Debian: apt-get install -y wasi-libc", err)
	}
	return first + ", wasi-libc " + string(libc), nil
}
