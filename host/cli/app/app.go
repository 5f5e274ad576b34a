package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An App is one invocation of the program.
type App struct {
	Env          Env
	Out          output.Printer // standard output
	Err          output.Printer // standard error
	Flags        globalFlags
	ServedDir    string         // folder that serve was given, absolute
	Paint        output.Palette // of standard error
	PaintOut     output.Palette
	typed        <-chan string // lines from the terminal, once a question was asked
	StdinClosed  bool          // standard input has ended
	StdoutClosed bool          // standard output is closed by its reader
	through      bool          // it was reported that another process answers

	Looks          bool // the verb executes and changes nothing, so unknown settings do not stop it
	ignored        bool // unknown settings were shown
	ReportsPlugins bool // the verb itself reports plugins that are not live

	mu          sync.Mutex
	onInterrupt func() // replaces the end of the program while a run can be stopped
}

// WatchInterrupts makes the first signal cancel the program, or call the function of
// SetInterrupt, and the second end it at once. The returned function ends the watch.
func (a *App) WatchInterrupts(cancel context.CancelCauseFunc) func() {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-a.Env.Interrupts:
			case <-done:
				return
			}
			if n > 0 {
				a.Env.Exit(ExitInterrupt)
				return
			}
			a.mu.Lock()
			polite := a.onInterrupt
			a.mu.Unlock()
			if polite != nil {
				polite()
			} else {
				cancel(ErrInterrupted)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// SetInterrupt sets what the first Ctrl-C does; nil cancels the context of the
// program.
func (a *App) SetInterrupt(polite func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onInterrupt = polite
}

// Report prints an error and, on a line of its own, what to do about it.
func (a *App) Report(err error) {
	var problems sentinels.Problems
	var held *heldError
	var usage *UsageError
	switch {
	case err == nil, errors.As(err, new(ExitError)):
	case errors.Is(err, syscall.EPIPE): // the reader of our output is closed
	case errors.As(err, &problems):
		a.ShowProblems(problems)
	case errors.Is(err, ErrInterrupted):
		a.ErrorMessage("interrupted", "")
	case errors.As(err, &held):
		a.ErrorMessage(held.text, held.hint)
	case errors.As(err, &usage):
		a.ErrorMessage(usage.Text, usage.Hint)
	default:
		hint := ""
		if e := abi.As(err); e != nil {
			hint = e.Hint
		}
		a.ErrorMessage(err.Error(), hint)
	}
}

// ErrorMessage prints an error and its hint, also with -q. Lines of text after the
// first are indented, because text from elsewhere may have several.
func (a *App) ErrorMessage(text, hint string) {
	a.PrintErr("%s %s\n", a.Paint.Bad("sentinel:"), Block(text))
	a.Hint(hint)
}

// Hint prints what to do about an error on a line of its own, for scripts and
// people.
func (a *App) Hint(hint string) {
	if hint != "" {
		a.PrintErr("%s %s\n", a.Paint.Dim("hint:"), Block(hint))
	}
}

// Info prints a message that is not an error, unless -q is given. It escapes arguments
// that are not Text.
func (a *App) Info(format string, args ...any) {
	if !a.Flags.Quiet {
		a.PrintErr("%s\n", termtext.Sprintf(format, args...))
	}
}

// PrintErr prints to standard error. Its error is dropped, because there is no other
// stream to report it on.
func (a *App) PrintErr(format string, args ...any) { _ = a.Err.Printf(format, args...) }

// Block escapes text that may have several lines. Long stretches of blanks become counts.
func Block(text string) termtext.Text { return termtext.Block(termtext.Blanks(text), "  ") }

// ShowProblems prints each problem on a line of its own, with its hint below.
func (a *App) ShowProblems(list sentinels.Problems) {
	for _, p := range list {
		text := output.Escape(p.String())
		if p.IsWarning() {
			text = a.Paint.Warn("warning: ") + text
		}
		a.PrintErr("%s\n", text)
		a.Hint(p.Hint)
	}
}

// ExactArgs returns an error unless there is one argument for each name.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return RangeArgs(len(names), len(names), names...)
}

// RangeArgs is [ExactArgs] for a range; a negative most is no maximum.
func RangeArgs(least, most int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &UsageError{fmt.Sprintf("%s: %s is missing", cmd.CommandPath(), names[len(args)]), "usage: " + cmd.UseLine()}
		case most >= 0 && len(args) > most:
			return &UsageError{fmt.Sprintf("%s: unexpected argument %q", cmd.CommandPath(), args[most]), "usage: " + cmd.UseLine()}
		}
		return nil
	}
}

// Warn prints a warning: the verb succeeded, but something beside it did not.
func (a *App) Warn(text string) {
	a.PrintErr("%s\n", a.Paint.Warn("warning: ")+Block(text))
}
