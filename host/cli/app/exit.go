package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The exit codes of every verb.
const (
	ExitOK        = 0
	ExitFailed    = 1   // the run failed or was stopped, or the verb failed
	ExitUsage     = 2   // the command line
	ExitInvalid   = 3   // the definition
	ExitDenied    = 4   //
	ExitNotFound  = 5   //
	ExitTimedOut  = 6   // the run reached a limit
	ExitHeld      = 7   // another process has the store, or no process answers where one is needed
	ExitWaiting   = 8   // the run waits for a person and can be resumed
	ExitInterrupt = 130 // a second Ctrl-C, or one before there was a run
)

// ExitCodes are the exit codes with their meaning, for help.
var ExitCodes = []struct {
	Code    int
	Meaning string
}{
	{ExitOK, "the run completed, or the command did what it was asked to"},
	{ExitFailed, "the run failed or was stopped, or the command failed"},
	{ExitUsage, "the command line is wrong"},
	{ExitInvalid, "the definition is not valid"},
	{ExitDenied, "denied"},
	{ExitNotFound, "a sentinel, run or file was not found"},
	{ExitTimedOut, "the run reached a limit"},
	{ExitHeld, "another process has the store, or no process answers where one is needed"},
	{ExitWaiting, "the run waits for a person, and can be resumed"},
	{ExitInterrupt, "a second Ctrl-C, or one before there was a run"},
}

// ErrInterrupted is the cause of a context that Ctrl-C ended.
var ErrInterrupted = errors.New("interrupted")

// A UsageError is a mistake in the command line.
type UsageError struct{ Text, Hint string }

// NewUsageError returns a *UsageError. hint may be empty.
func NewUsageError(text, hint string) error { return &UsageError{Text: text, Hint: hint} }

func (e *UsageError) Error() string { return e.Text }

// ExitError ends the program with a code; everything has been reported.
type ExitError int

func (e ExitError) Error() string { return "exit" }

// heldError names the process that has the store.
type heldError struct {
	text, hint string
}

func (e *heldError) Error() string { return e.text }

func (e *heldError) Unwrap() error { return runtime.ErrHeld }

// ExitCode maps what a verb returned to the code that the process ends with.
func ExitCode(err error) int {
	var (
		code     ExitError
		usage    *UsageError
		problems sentinels.Problems
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &problems), errors.As(err, new(invalidError)):
		return ExitInvalid
	case errors.Is(err, runtime.ErrHeld), errors.Is(err, control.ErrNoOwner):
		return ExitHeld
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupt
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimedOut
	}
	switch abi.CodeOf(err) {
	case abi.BadFields:
		return ExitUsage
	case abi.Denied:
		return ExitDenied
	case abi.NotFound:
		return ExitNotFound
	case abi.Timeout:
		return ExitTimedOut
	}
	return ExitFailed
}

// StatusCode maps the status of a run to the exit code of a verb that followed it.
func StatusCode(status sentinels.Status) int {
	switch status {
	case sentinels.StatusCompleted:
		return ExitOK
	case sentinels.StatusTimedOut:
		return ExitTimedOut
	case sentinels.StatusWaiting, sentinels.StatusQuarantined, sentinels.StatusPaused:
		return ExitWaiting
	}
	return ExitFailed
}

// invalidError is a definition that the store's process refused.
type invalidError struct{ err *abi.Error }

// Invalid marks the error of a refused definition, for the exit code.
func Invalid(err error) error {
	if e := abi.As(err); e != nil && e.Code == abi.BadFields {
		return invalidError{e}
	}
	return err
}

func (e invalidError) Error() string { return e.err.Message }

func (e invalidError) Unwrap() error { return e.err }

// FlagErrorText is the text of an error about a flag. That of a number has names of Go in it.
func FlagErrorText(err error) string {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	want := map[string]string{"int": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false"}[invalid.GetFlag().Value.Type()]
	switch {
	case want == "":
		return err.Error()
	case errors.Is(err, strconv.ErrRange):
		want += " that is nearer to 0"
	}
	return fmt.Sprintf("invalid --%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}
