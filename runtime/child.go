package runtime

import (
	"fmt"
	"os"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// Child is the command that starts the helper process of this program. Its environment
// contains only Env and a marker. The program must begin with [ServeChild]. The zero
// value is this program itself.
type Child struct {
	Path string
	Args []string
	Env  []string
}

// ServeChild must be the first thing in the main, or the TestMain, of a program
// that embeds the runtime. In a process that was started as a child it serves
// until its parent is gone and exits; in any other it returns at once.
func ServeChild() {
	subprocess.EnableSelf()
	if cond.ServeChild() || wasm.ServeChild() {
		os.Exit(0)
	}
	if kind := subprocess.Kind(); kind != "" {
		// Continuing would start a host where the parent expects a child.
		fmt.Fprintf(os.Stderr, "serve child: unknown kind %q\n", kind)
		os.Exit(2)
	}
}

// resolve returns the command to start, the zero value if no child can be started.
func (c Child) resolve() subprocess.Command {
	if c.Path == "" {
		c.Path = subprocess.Self().Path
	}
	if c.Path == "" {
		return subprocess.Command{}
	}
	return subprocess.Command{Path: c.Path, Args: c.Args, Env: c.Env}
}
