package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/javascript"
)

// javascriptSource is the one file of a plugin in JavaScript.
const javascriptSource = "plugin.js"

// javascriptLang is plain JavaScript in an interpreter that is embedded in this program,
// so that a build starts no tool. A build cannot run the script: an invalid one is found
// when the module is described.
var javascriptLang = Language{
	Name:     "javascript",
	Aliases:  []string{"js"},
	Source:   javascriptSource,
	SDK:      javascript.SDK(),
	Template: javascript.Template(),
	probe:    map[string]string{javascriptSource: "register({});\n"},
	build:    buildJavaScript,
}

func buildJavaScript(_ context.Context, dir, out string, _ io.Writer) error {
	path := filepath.Join(dir, javascriptSource)
	source, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("build javascript: no %q", path),
			Hint: "the script is that one file; a bundler writes it from several"}
	}
	if err != nil {
		return fmt.Errorf("build javascript: %w", err)
	}
	module, err := javascript.Module(javascriptSource, source)
	if err != nil {
		return fmt.Errorf("build javascript: %w", err)
	}
	return os.WriteFile(out, module, 0o644) //nolint:gosec // a module is readable for all users
}
