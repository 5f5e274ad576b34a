package runtime

import (
	"fmt"
	"os"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// Child says how to start the helper process of this program: a Path and its
// Args, with nothing in its environment but Env and a marker. The program it
// starts must begin with [ServeChild]. The zero value is this program again.
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
	if cond.ServeChild() || wasm.ServeChild() || statefolder.ServeChild() {
		os.Exit(0)
	}
	if kind := subprocess.Kind(); kind != "" {
		// Going on would start a host where its parent expects a child.
		fmt.Fprintf(os.Stderr, "serve child %q: this program has no such child\n", kind)
		os.Exit(2)
	}
}

// resolve returns the command to start, the zero value if none may be.
func (c Child) resolve() subprocess.Command {
	if c.Path == "" {
		c.Path = subprocess.Self().Path
	}
	if c.Path == "" {
		return subprocess.Command{}
	}
	return subprocess.Command{Path: c.Path, Args: c.Args, Env: c.Env}
}
