package app

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/sentinel-runtime/sentinel/host/client"
)

// Env is the environment of one invocation. Streams and Dir must be set; functions have
// the defaults that are documented with them.
type Env struct {
	Args   []string // without the program's name
	Dir    string   // current folder, absolute
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	// Which of the streams are terminals. Default none.
	StdinTerminal, StdoutTerminal, StderrTerminal bool

	Width      func() int                                // columns of the terminal. Default 80
	Getenv     func(string) string                       // default: no variable is set
	Now        func() time.Time                          // default time.Now
	Interrupts <-chan os.Signal                          // the first requests the end, the second ends at once. Default never
	Password   func(ctx context.Context) (string, error) // reads a line of the terminal without showing it, until the context ends. Default: there is none
	Exit       func(code int)                            // for the second interrupt. Default os.Exit
	Version    string                                    // default "devel"
	Exposed    error                                     // why other processes can read this one's environment. Default: they cannot
	// Engine answers in place of a process that is found by the socket or a URL, as a
	// server. Default none; it is for tests and for programs that embed the command line.
	Engine client.Engine
	Bench  func(ctx context.Context, w io.Writer, format string) error // default: the verb returns an error
}

// SetDefaults sets the functions that are nil.
func (e *Env) SetDefaults() {
	if e.Width == nil {
		e.Width = func() int { return 80 }
	}
	if e.Getenv == nil {
		e.Getenv = func(string) string { return "" }
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Exit == nil {
		e.Exit = os.Exit //nolint:forbidigo // a second Ctrl-C ends the process
	}
	if e.Version == "" {
		e.Version = "devel"
	}
}
