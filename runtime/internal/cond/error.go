package cond

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Every error is an [*abi.Error]. bad_fields says that the source itself is
// wrong, and where; plugin that it threw or gave what JSON cannot carry;
// timeout, limit and memory name the bound; unavailable that the child it needs
// cannot be had. All but timeout, cancelled and a lost child are permanent: the
// same source and variables fail again.

const noChildHint = "begin main and TestMain with runtime.ServeChild(), or set Options.Child"

func errf(code abi.Code, format string, args ...any) *abi.Error {
	e := abi.New(code, "condition: "+fmt.Sprintf(format, args...))
	switch code {
	case abi.BadFields, abi.Plugin, abi.Limit, abi.Memory:
		e.Permanent = true
	}
	return e
}

// badAt is a mistake in the source at a byte offset.
func badAt(src string, offset int, format string, args ...any) *abi.Error {
	return badPos(locate(src, offset), format, args...)
}

func badPos(p position, format string, args ...any) *abi.Error {
	e := abi.New(abi.BadFields, fmt.Sprintf("condition at %s: ", p)+fmt.Sprintf(format, args...))
	e.Permanent = true
	return e
}

func withHint(e *abi.Error, hint string) *abi.Error {
	e.Hint = hint
	return e
}

// position is a place in a source. Line and column start at 1, the column
// counts code points.
type position struct{ line, column int }

func (p position) String() string { return fmt.Sprintf("%d:%d", p.line, p.column) }

// locate returns the position of a byte offset; one outside src is taken to be
// its nearest end.
func locate(src string, offset int) position {
	before := src[:max(0, min(offset, len(src)))]
	line := strings.Count(before, "\n")
	if line > 0 {
		before = before[strings.LastIndexByte(before, '\n')+1:]
	}
	return position{line + 1, utf8.RuneCountInString(before) + 1}
}

// clip shortens text that a script made before it becomes part of a message.
func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
