package abitest

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// limitChecks are about clause A8: values at the limits and above them.
var limitChecks = []check{
	{"A8", "an output of 1 MiB is accepted, one byte more is not", with("size", func(j *judge) {
		for _, n := range []int{13, 1000, 1 << 20} {
			got, err := j.raw(Invocation{}, fmt.Sprint(n))
			if text, _ := got.(string); err != nil || len(text) != n-len(`{"output":""}`) {
				j.faultf("an output of %d bytes: a text of %d bytes, %s", n, len(text), errorText(err))
			}
		}
		_, err := j.raw(Invocation{}, fmt.Sprint(1<<20+1))
		j.limited("an output of 1 MiB and a byte", err, abi.Output)
	})},
	{"A8", "a smaller limit of the output is enforced", with("size", func(j *judge) {
		_, err := j.raw(Invocation{OutputBytes: 100}, "101")
		j.limited("an output of 101 bytes of 100", err, abi.Output)
		if _, err := j.raw(Invocation{OutputBytes: 100}, "100"); err != nil {
			j.faultf("an output of 100 bytes of 100: %s", errorText(err))
		}
	})},
	{"A8", "a request of 256 KiB reaches the host, a byte more is answered with limit", with("request", func(j *judge) {
		j.gives(Invocation{Call: answering(`{"ok":1}`)}, fmt.Sprint(256<<10), `[0,8]`)
		got, err := j.raw(Invocation{Call: answering(`{"ok":1}`)}, fmt.Sprint(256<<10+1))
		if list, _ := got.([]any); err != nil || len(list) != 2 || !sameValue(list[0], 1) {
			j.faultf("a request of 256 KiB and a byte: %s, %s, want an error as the answer", encode(got), errorText(err))
		}
	})},
	{"A8", "an answer of 256 KiB reaches the guest, a larger one is an error", with("request", func(j *judge) {
		fits := `{"ok":"` + strings.Repeat("x", 256<<10-9) + `"}`
		j.gives(Invocation{Call: answering(fits)}, "10", fmt.Sprintf("[0,%d]", len(fits)))
		got, err := j.raw(Invocation{Call: answering(fits + " ")}, "10")
		if list, _ := got.([]any); err != nil || len(list) != 2 || !sameValue(list[0], 1) {
			j.faultf("an answer of 256 KiB and a byte: %s, %s, want an error as the answer", encode(got), errorText(err))
		}
	})},
	{"A8", "memory grows to its limit and no further", with("grow", func(j *judge) {
		j.gives(Invocation{MemoryBytes: 4 << 20}, "63", `true`)
		got, err := j.raw(Invocation{MemoryBytes: 4 << 20}, "64")
		if got == true || err != nil && abi.CodeOf(err) != abi.Memory {
			j.faultf("memory of 4 MiB and a page: %s, %s, want false or code memory", encode(got), errorText(err))
		}
		j.gives(Invocation{}, "1023", `true`) // the default, 64 MiB
	})},
	{"A8", "standard error is counted, and ends the step above the limit", with("stderr", func(j *judge) {
		j.gives(Invocation{LogBytes: 1000}, "1000", `1000`)
		_, err := j.raw(Invocation{LogBytes: 1000}, "1001")
		j.limited("1,001 bytes of 1,000", err, abi.Limit)
		result, err := j.guest.Run(j.ctx, Invocation{Input: []byte("10"), Clock: epoch})
		if err != nil || result.Stderr != strings.Repeat("x", 10) {
			j.faultf("ten bytes came out as %q, %s", result.Stderr, errorText(err))
		}
	})},
	{"A8", "ten thousand calls are made", with("many", func(j *judge) {
		calls := 0
		j.gives(Invocation{Call: counting(&calls)}, "10000", `true`)
		if calls != 10_000 {
			j.faultf("%d calls reached the host", calls)
		}
	})},
}

// wasiChecks verify that a guest has no access to anything outside by WASI and by the
// functions of the PDKs.
var wasiChecks = []check{
	{"A1.6", "no function of WASI has access to the outside", with("wasi", func(j *judge) {
		j.gives(Invocation{}, `{}`, `{"reached":[""],"arguments":0,"variables":0}`)
	})},
	{"A1.7", "kernel functions for configuration, variables, HTTP and log levels return nothing", with("kernel", func(j *judge) {
		j.gives(Invocation{}, `{}`, `[0,0,0,0,2147483647]`)
	})},
}

// limited wants an error of a code.
func (j *judge) limited(what string, err error, code abi.Code) {
	if abi.CodeOf(err) != code {
		j.faultf("%s: %s, want code %s", what, errorText(err), code)
	}
}
