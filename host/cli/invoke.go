package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An app is one invocation on its way through a verb.
type app struct {
	env      Env
	out      printer // standard output
	errs     printer // standard error
	flags    globalFlags
	served   string  // folder given to serve; absolute
	paint    palette // of standard error
	paintOut palette
	typed    <-chan string // lines from the terminal, once something was asked
	deaf     bool          // the terminal's input is closed
	lost     bool          // nobody reads standard output any more
	through  bool          // it was said that a server answers

	aboutPlugins bool // the verb says itself which plugins are not live

	mu          sync.Mutex
	onInterrupt func() // in place of ending everything; set while a run can be stopped
}

// watchInterrupts turns the first signal into a polite end and the second into
// an immediate one. The returned function ends the watch.
func (a *app) watchInterrupts(cancel context.CancelCauseFunc) func() {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-a.env.Interrupts:
			case <-done:
				return
			}
			if n > 0 {
				a.env.Exit(ExitInterrupt)
				return
			}
			a.mu.Lock()
			polite := a.onInterrupt
			a.mu.Unlock()
			if polite != nil {
				polite()
			} else {
				cancel(errInterrupted)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// setInterrupt says what the first Ctrl-C does from now on; nil ends the program
// politely.
func (a *app) setInterrupt(polite func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onInterrupt = polite
}

// report says what went wrong, and on a line of its own what to do about it.
func (a *app) report(err error) {
	var problems sentinels.Problems
	var held *heldError
	var usage *usageError
	switch {
	case err == nil, errors.As(err, new(exitError)):
	case errors.Is(err, syscall.EPIPE): // nobody reads any more what would be said
	case errors.As(err, &problems):
		a.problems(problems)
	case errors.Is(err, errInterrupted):
		a.complain("interrupted", "")
	case errors.As(err, &held):
		a.complain(held.text, held.hint)
	case errors.As(err, &usage):
		a.complain(usage.text, usage.hint)
	default:
		hint := ""
		if e := abi.As(err); e != nil {
			hint = e.Hint
		}
		a.complain(err.Error(), hint)
	}
}

// complain prints an error and its hint, also with -q. Lines of text after the
// first are indented, as foreign text may bring its own.
func (a *app) complain(text, hint string) {
	a.note("%s %s\n", a.paint.bad("sentinel:"), block(text))
	a.hint(hint)
}

// hint prints what to do about an error on a line of its own, so that scripts and
// people find it.
func (a *app) hint(hint string) {
	if hint != "" {
		a.note("%s %s\n", a.paint.dim("hint:"), hint)
	}
}

// say prints a message that is not an error, unless -q is given. It escapes arguments
// that are not Text.
func (a *app) say(format string, args ...any) {
	if !a.flags.quiet {
		a.note("%s\n", termtext.Sprintf(format, args...))
	}
}

// note prints to standard error. Nothing can be done about a stream that no process
// reads, so its error is dropped.
func (a *app) note(format string, args ...any) { _ = a.errs.printf(format, args...) }

// block is foreign text that may have several lines.
func block(text string) termtext.Text { return termtext.Block(text, "  ") }

// problems prints each problem on a line of its own, with its hint below.
func (a *app) problems(list sentinels.Problems) {
	for _, p := range list {
		text := escaped(p.String())
		if p.Kind == sentinels.KindWarning {
			text = a.paint.warn("warning: ") + text
		}
		a.note("%s\n", text)
		a.hint(p.Hint)
	}
}

// exactly refuses another number of arguments than names has, in the words of
// the verb.
func exactly(names ...string) cobra.PositionalArgs {
	return between(len(names), len(names), names...)
}

// between is exactly for a range; most below 0 is no end.
func between(least, most int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &usageError{fmt.Sprintf("%s: %s is missing", cmd.CommandPath(), names[len(args)]), "usage: " + cmd.UseLine()}
		case most >= 0 && len(args) > most:
			return &usageError{fmt.Sprintf("%s: %q is one argument too many", cmd.CommandPath(), args[most]), "usage: " + cmd.UseLine()}
		}
		return nil
	}
}

// warn prints what did not work beside what was asked for.
func (a *app) warn(text string) {
	a.note("%s\n", a.paint.warn("warning: ")+block(text))
}
