package runtime

import (
	"fmt"
	"os"
	stdruntime "runtime"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
)

// Child says how to start the helper process of this program: a Path and its
// Args, with nothing in its environment but Env and a marker. The program it
// starts must begin with [ServeChild]. The zero value is this program again.
type Child struct {
	Path string
	Args []string
	Env  []string
}

// served says that this program's main began with [ServeChild], so starting it
// again gives a child and not a second host.
var served atomic.Bool

// ServeChild must be the first thing in the main, or the TestMain, of a program
// that embeds the runtime. In a process that was started as a child it serves
// until its parent is gone and exits; in any other it returns at once.
func ServeChild() {
	served.Store(true)
	if cond.ServeChild() {
		os.Exit(0)
	}
	if isVerifyChild() {
		if err := serveVerify(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "serve child %q: %v\n", verifyChild, err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	if kind := os.Getenv(cond.Marker); kind != "" {
		// Going on would start a host where its parent expects a child.
		fmt.Fprintf(os.Stderr, "serve child %q: this program has no such child\n", kind)
		os.Exit(2)
	}
}

// resolve returns the command to start, the zero value if none may be.
func (c Child) resolve() cond.ChildCommand {
	if c.Path == "" && served.Load() {
		c.Path = self()
	}
	if c.Path == "" {
		return cond.ChildCommand{}
	}
	return cond.ChildCommand{Path: c.Path, Args: c.Args, Env: c.Env}
}

// self is the path of the running program. On Linux it names the image itself,
// so a child is of the same release when the file was replaced meanwhile.
func self() string {
	const image = "/proc/self/exe"
	if stdruntime.GOOS == "linux" {
		if _, err := os.Stat(image); err == nil {
			return image
		}
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}
