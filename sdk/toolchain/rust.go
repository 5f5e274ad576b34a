package toolchain

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/rust"
)

// rustTarget needs its own standard library. rustc reports a missing one only when it
// builds.
const rustTarget = "wasm32-unknown-unknown"

// rustc is Debian's if it is installed: a rustup toolchain that is first in PATH usually
// does not have the target.
var rustc = Tool{
	Name: "rustc", Try: []string{"/usr/bin/rustc", "rustc"},
	Install: "apt-get install rustc libstd-rust-dev-wasm32 lld",
}

// rustLinker is the linker of rustc; Debian has one or both of the names.
var rustLinker = Tool{
	Name: "wasm-ld", Try: []string{"rust-lld", "wasm-ld", "wasm-ld-14", "wasm-ld-19"},
	Install: "apt-get install lld",
}

// rustlang is Rust with rustc alone: no cargo and no crates, so no network.
var rustlang = Language{
	Name:     "rust",
	Aliases:  []string{"rs"},
	Source:   "plugin.rs",
	Tools:    []Tool{rustc, rustLinker},
	SDK:      rust.SDK(),
	Template: rust.Template(),
	probe: map[string]string{
		"sdk/.keep": "",
		"plugin.rs": `#[no_mangle]
pub extern "C" fn f(n: u32) -> usize { format!("{n}").len() }
`},
	build: buildRust,
}

// buildRust calls rustc once. The stack has 64 KiB: with the default of 1 MiB, every
// instance would have that memory from its start.
func buildRust(ctx context.Context, dir, out string, say io.Writer) error {
	compiler, err := rustc.Path()
	if err != nil {
		return err
	}
	linker, err := rustLinker.Path()
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := hasTarget(ctx, compiler); err != nil {
		return err
	}
	return withSDK(dir, rust.SDK(), func(dir string) error {
		cmd := exec.CommandContext(ctx, compiler, "--edition", "2021", "--target", rustTarget,
			"--crate-type", "cdylib", "--crate-name", "plugin",
			"-C", "linker="+linker, "-C", "linker-flavor=wasm-ld", "-C", "opt-level=z", "-C", "lto=yes", "-C", "codegen-units=1",
			"-C", "panic=abort", "-C", "strip=symbols", "-C", "link-arg=-zstack-size=65536", "-o", out, "plugin.rs")
		cmd.Dir = dir
		cmd.Stdout, cmd.Stderr = say, say
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("rustc: %w", err)
		}
		return nil
	})
}

// hasTarget checks for the target's standard library.
func hasTarget(ctx context.Context, compiler string) error {
	cmd := exec.CommandContext(ctx, compiler, "--print", "target-libdir", "--target", rustTarget)
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("rustc: %w", err)
	}
	lib := strings.TrimSpace(string(text))
	if _, err := os.Stat(lib); err != nil {
		return fmt.Errorf("find %s: %s has no standard library for it; install it with: %s (or: rustup target add %s)",
			rustTarget, compiler, rustc.Install, rustTarget)
	}
	return nil
}
