package cond

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Every error is an [*abi.Error]. Its code is bad_fields if the source is
// wrong, with the position; plugin if it threw an exception or its result is
// not representable as JSON, where the message is that of an Error which the
// author throws, alone; timeout, limit or memory if it exceeded that
// limit; unavailable if there is no child process. All errors are permanent,
// because the same source and variables fail again, except timeout, cancelled
// and a lost child.

const noChildHint = "begin main and TestMain with runtime.ServeChild(), or set Options.Child"

// errf returns an error. It names an expression, as not only conditions are evaluated: also values, lists and counts.
func errf(code abi.Code, format string, args ...any) *abi.Error {
	e := abi.New(code, "expression: "+fmt.Sprintf(format, args...))
	switch code {
	case abi.BadFields, abi.Plugin, abi.Limit, abi.Memory:
		e.Permanent = true
	}
	return e
}

// errAt returns the error of a mistake in the source at a byte offset.
func errAt(src string, offset int, format string, args ...any) *abi.Error {
	return errAtPosition(locate(src, offset), format, args...)
}

func errAtPosition(p position, format string, args ...any) *abi.Error {
	e := abi.New(abi.BadFields, fmt.Sprintf("expression at %s: ", p)+fmt.Sprintf(format, args...))
	e.Permanent = true
	return e
}

func withHint(e *abi.Error, hint string) *abi.Error {
	e.Hint = hint
	return e
}

// position is a position in a source. Line and column start at 1. The column
// counts code points.
type position struct{ line, column int }

func (p position) String() string { return fmt.Sprintf("%d:%d", p.line, p.column) }

// locate returns the position of a byte offset, limited to the ends of src.
func locate(src string, offset int) position {
	before := src[:max(0, min(offset, len(src)))]
	line := strings.Count(before, "\n")
	if line > 0 {
		before = before[strings.LastIndexByte(before, '\n')+1:]
	}
	return position{line + 1, utf8.RuneCountInString(before) + 1}
}
