package app

import (
	"context"
	"io"
	"os"
	"time"
)

// Env is the world of one invocation. Zero functions take the defaults named
// at them; streams and Dir must be set.
type Env struct {
	Args   []string // without the program's name
	Dir    string   // current folder, absolute
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	// Which of the streams a person sits at. Default none.
	StdinTerminal, StdoutTerminal, StderrTerminal bool

	Width      func() int                                                  // columns of the terminal. Default 80
	Getenv     func(string) string                                         // default: nothing is set
	Now        func() time.Time                                            // default time.Now
	Interrupts <-chan os.Signal                                            // the first one ends politely, the second at once. Default never
	Password   func() (string, error)                                      // reads a line of the terminal without showing it. Default: there is none
	Exit       func(code int)                                              // for that second one. Default os.Exit
	Version    string                                                      // default "devel"
	Exposed    error                                                       // why other processes can read this one's environment. Default: they cannot
	Bench      func(ctx context.Context, w io.Writer, format string) error // default: the verb says that it is not built in
}

// SetDefaults puts the defaults in.
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
		e.Exit = os.Exit //nolint:forbidigo // what a second Ctrl-C does
	}
	if e.Version == "" {
		e.Version = "devel"
	}
}
