package toolchain

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/internal/embedded"
)

//go:embed all:template/go
var goTemplate embed.FS

// goTool is the standard toolchain; the SDK needs go:wasmexport.
var goTool = Tool{Name: "go", Try: []string{"go"}, Install: "apt-get install golang (1.24 or newer), or see https://go.dev/dl"}

// golang is Go with the standard toolchain. A project is a module of its own
// whose go.mod replaces the SDK by the copy in its folder, so that a build needs no
// network; a folder of a larger module works too.
var golang = Language{
	Name:     "go",
	Aliases:  []string{"golang"},
	Source:   "plugin.go",
	Tools:    []Tool{goTool},
	SDK:      sdk.Source(),
	Template: embedded.Folder(goTemplate, "template/go"),
	probe: map[string]string{
		"go.mod": "module probe\n\ngo 1.24\n",
		"plugin.go": `package main

//go:wasmexport f
func f() int32 { return 1 }

func main() {}
`},
	build: buildGo,
}

// buildGo builds with flags for a reproducible build: the same sources and the same Go
// version give the same bytes on every machine.
func buildGo(ctx context.Context, dir, out string, say io.Writer) error {
	path, err := goTool.Path()
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared",
		"-ldflags=-s -w -buildid=", "-o", out, ".")
	cmd.Dir = dir
	// Settings of the user would build another module.
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWASM=", "GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = say, say
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}
