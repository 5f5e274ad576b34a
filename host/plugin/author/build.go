package author

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

// Build makes the module of a project and describes it; only one that a host
// would take is put in the place of out, each in one step, so that a host which
// watches the file never sees a broken one. The output of the tools is passed to say.
//
// The error of tools that refuse the source has code plugin; their output has the reason.
func Build(ctx context.Context, p toolchain.Project, say io.Writer, out ...string) (Report, error) {
	module, err := Compile(ctx, p, say)
	if err != nil {
		return Report{}, err
	}
	r, err := Inspect(ctx, out[0], module, Options{})
	if err != nil {
		return r, err
	}
	if r.Problem != nil {
		e := *r.Problem
		e.Message = fmt.Sprintf("build %s: it compiles, but no host takes it: %s", p.Name, e.Message)
		return r, &e
	}
	for _, name := range out {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return r, fmt.Errorf("build %s: %w", p.Name, err)
		}
		if err := toolchain.Install(module, name); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Compile makes the module of a project and returns it. Nothing is left in the
// project.
func Compile(ctx context.Context, p toolchain.Project, say io.Writer) ([]byte, error) {
	if err := p.Language.MissingIn(p.Dir); err != nil {
		return nil, &abi.Error{Code: abi.Unavailable, Message: err.Error(), Hint: "`make toolchains` in the sources of sentinel installs what all languages need"}
	}
	dir, err := os.MkdirTemp("", "plugin-")
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", p.Name, err)
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, p.Name+".wasm")
	if err := p.Language.Build(ctx, p.Dir, made, say); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &abi.Error{Code: abi.Plugin, Message: fmt.Sprintf("build %s: %v", p.Name, err), Hint: "what the tools said stands above"}
	}
	return os.ReadFile(made)
}
