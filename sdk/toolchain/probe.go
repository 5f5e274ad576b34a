package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Probe builds the smallest project that needs every part of the toolchain. It
// returns nil if that works, else an error with the tools' output and what to
// install. A program in PATH is not enough: clang comes without the library for
// Wasm, rustc without the target, node without the compiler.
func (l Language) Probe(ctx context.Context) error {
	if err := l.Missing(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, text := range l.probe {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	var output bytes.Buffer
	if err := l.Build(ctx, dir, filepath.Join(dir, "probe.wasm"), &output); err != nil {
		return fmt.Errorf("build a probe in %s: %w\n%s%s", l.Name, err, &output, l.installHint())
	}
	return nil
}

// installHint names what to install, each command once.
func (l Language) installHint() string {
	var hint string
	seen := map[string]bool{}
	for _, t := range l.Tools {
		if !seen[t.Install] {
			seen[t.Install] = true
			hint += "\ninstall: " + t.Install
		}
	}
	return hint
}
