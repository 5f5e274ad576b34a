package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/plugin/author"
	"github.com/sentinel-runtime/sentinel/host/plugin/plugintest"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

// A moduleSource is what an argument of the verbs for authors names.
type moduleSource struct {
	file    string // the module's, as a person would type it; of a project, where it would be
	dir     string // where tests and plugin.json lie
	project bool
	module  []byte
}

// pluginDir is the folder whose plugins are live: the one that --plugins names,
// else that of the nearest .sentinel folder.
func (a verbs) pluginDir() string {
	if a.Flags.Plugins != "" {
		return a.Path(a.Flags.Plugins)
	}
	return filepath.Join(a.Dir(), "plugins")
}

// moduleOf reads a module by its file or by the name of a plugin in the plugins
// folder. A folder is a project, which is built.
func (a verbs) moduleOf(ctx context.Context, arg string) (moduleSource, error) {
	path := a.Path(arg)
	if app.IsDir(path) {
		return a.projectOf(ctx, path)
	}
	if toolchain.CheckName(arg) == nil {
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join(a.pluginDir(), arg+".wasm")
		}
	}
	text, err := app.ReadFile(path, app.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return moduleSource{}, app.NotFound("give the file of a module, the folder of a project, or the name of a plugin that is installed",
			"no plugin %q", a.Relative(path))
	}
	if err != nil {
		return moduleSource{}, fmt.Errorf("read module: %w", err)
	}
	return moduleSource{file: a.Relative(path), dir: filepath.Dir(path), module: text}, nil
}

func (a verbs) projectOf(ctx context.Context, dir string) (moduleSource, error) {
	p, err := toolchain.Open(dir)
	if err != nil {
		return moduleSource{}, err
	}
	module, err := author.Compile(ctx, p, a.toolOutput())
	return moduleSource{file: a.Relative(p.Module()), dir: dir, project: true, module: module}, err
}

// toolOutput is where compilers write.
func (a verbs) toolOutput() io.Writer { return a.Err.Stream() }

// openPlugin loads a module in a host of its own, with the compiled code that
// other verbs keep. The returned function closes both.
func (a verbs) openPlugin(ctx context.Context, module []byte) (*plugintest.Plugin, func() error, error) {
	h, err := guest.Open(guest.Options{CacheDir: a.CacheDir()})
	if err != nil {
		return nil, nil, err
	}
	p, err := plugintest.Load(ctx, h, module, guest.LoadOptions{})
	if err != nil {
		return nil, nil, errors.Join(err, h.Close())
	}
	return p, func() error {
		p.Close()
		return h.Close()
	}, nil
}

// text reads a value of a flag: the text itself, "@FILE", or "-" for standard
// input.
func (a verbs) text(flag, value string) ([]byte, error) {
	switch name, ok := strings.CutPrefix(value, "@"); {
	case value == "-":
		text, err := io.ReadAll(a.Env.Stdin)
		if err != nil {
			return nil, fmt.Errorf("%s: standard input: %w", flag, err)
		}
		return text, nil
	case ok:
		text, err := app.ReadFile(a.Path(name), app.MaxFile)
		if err != nil {
			return nil, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("%s: %v", flag, err)}
		}
		return text, nil
	}
	return []byte(value), nil
}

// fakes reads what --fake names, nothing if it was not given.
func (a verbs) fakes(file string) ([]sdktest.Fake, error) {
	if file == "" {
		return nil, nil
	}
	if file != "-" {
		file = "@" + file
	}
	text, err := a.text("--fake", file)
	if err != nil {
		return nil, err
	}
	return sdktest.ReadFakes(text)
}

// argument is the first argument, "." if there is none.
func argument(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// megabytes is a size as a person reads it.
func megabytes(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
