package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/term"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/internal/procenv"
	"github.com/sentinel-runtime/sentinel/host/ops/bench"
)

// Main runs the program with the process's own streams and returns its exit
// code. args begins with the program's name. It hides the environment of the
// process from other processes, see package procenv, so call it first in main.
func Main(ctx context.Context, args ...string) int {
	exposed := errors.Join(procenv.Hide(), procenv.CloseInherited())
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // else it is nohup that wants it so
		signal.Notify(interrupts, syscall.SIGHUP)
	}
	defer signal.Stop(interrupts)
	// A reader of our output may close it, as head does, which must not stop a run. Ignoring the signal would do too, but processes of steps inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	var rest []string
	if len(args) > 1 {
		rest = args[1:]
	}
	return Run(ctx, app.Env{
		Args: rest, Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width:          stderrWidth,
		Password:       readPassword,
		Getenv:         os.Getenv,
		Interrupts:     interrupts,
		Version:        buildVersion(),
		Exposed:        exposed,
		Bench: func(ctx context.Context, w io.Writer, format string) error {
			return bench.Run(ctx, w, bench.Options{Format: format})
		},
	})
}

// readPassword reads a line of the terminal of standard input without showing it. When ctx ends first,
// the terminal shows again what is typed, and the read is abandoned: the program ends then.
func readPassword(ctx context.Context) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		typed <- line{text, err}
	}()
	select {
	case l := <-typed:
		return string(l.text), l.err
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}

// stderrWidth asks each time, because people resize terminals. 80 is what a
// terminal that does not know has always been.
func stderrWidth() int {
	if w, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// version is set by who builds a release, with the linker's -X, because a
// source archive or a container's build has no repository to ask.
var version string

// buildVersion is what the release said, else what the Go tool noted in the
// program.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	noted := info.Main.Version
	if noted == "(devel)" {
		noted = ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && noted == "" {
			noted = "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return noted
}
