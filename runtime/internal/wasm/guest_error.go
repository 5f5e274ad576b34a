package wasm

import (
	"errors"
	"fmt"
	stdruntime "runtime"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/sys"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// failure returns the error of Run for an error of wazero. The reason of the host, if
// it ended the guest, comes first.
func (c *call) failure(err error) error {
	if c.err != nil {
		return c.err
	}
	if c.ctx.Err() != nil {
		return c.endError()
	}
	inst := c.inst
	if err := inst.memories.GrowError(); err != nil {
		return err
	}
	var fault stdruntime.Error
	var exit *sys.ExitError
	switch {
	case errors.As(err, &fault):
		c.log("a host function failed", err)
		return abi.New(abi.Internal, "a host function failed")
	case inst.exited != nil && (err == nil || errors.As(err, &exit)): // a trap in a start section closes the instance too
		return abi.New(abi.Trap, inst.withPanic(fmt.Sprintf("the plugin exited with code %d instead of returning", *inst.exited)))
	case err == nil:
		return abi.New(abi.Internal, "the call failed without an error")
	}
	text := strings.TrimSuffix(firstLine(err.Error()), " (recovered by wazero)")
	if _, trap, ok := strings.Cut(text, "wasm error: "); ok {
		text = trap
	}
	return abi.New(abi.Trap, inst.withPanic("the plugin trapped: "+text))
}

// withPanic adds the line of stderr that a Go or Rust panic writes before it traps.
func (inst *instance) withPanic(message string) string {
	for line := range strings.Lines(inst.stderr.String()) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "panic") || strings.HasPrefix(line, "fatal error:") {
			return message + ": " + clip(line, 200)
		}
	}
	return message
}

// maxGuestError limits the error text of a guest, in bytes.
const maxGuestError = 16 << 10

// guestError decodes the argument of error_set: an error object, or text.
func guestError(text string) error {
	var e abi.Error
	if len(text) <= maxGuestError && strictjson.DecodeForeign([]byte(text), &e) == nil && e.Message != "" && (e.Data == "" || e.Data[0] == '{') {
		if !abi.IsCode(string(e.Code)) {
			e.Code = abi.Plugin
		}
		return &e
	}
	return abi.New(abi.Plugin, clip(text, maxGuestError))
}

// firstLine returns text up to its first line break.
func firstLine(text string) string {
	for i := range text {
		if text[i] == '\n' {
			return text[:i]
		}
	}
	return text
}

// clip cuts text to at most n bytes of valid UTF-8.
func clip(text string, n int) string {
	if len(text) > n {
		// Do not cut a character in two.
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	out := make([]rune, 0, len(text))
	for _, r := range text { // range replaces invalid bytes
		out = append(out, r)
	}
	return string(out)
}
