//go:build unix

package cond_test

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// hostileSources crash a process that evaluates them with goja, or keep it busy
// beyond goja's Interrupt. Each must end with one of the given error codes, and
// the host must survive.
var hostileSources = []struct{ name, src, codes string }{
	{"512k round brackets", strings.Repeat("(", 512<<10), "limit"},
	{"512k square brackets", strings.Repeat("[", 512<<10), "limit"},
	{"2M negations", strings.Repeat("!", 2<<20), "limit"},
	{"256 KB of sums", strings.Repeat("1+", 128<<10) + "1", "limit"},
	{"16 KB of brackets", strings.Repeat("(", 16<<10), "limit"},
	{"16 KB of typeof", strings.Repeat("typeof ", 2300) + "1", ""},
	{"16 KB of ternaries", strings.Repeat("1?2:", 4000) + "3", ""},
	{"16 KB of arrows", strings.Repeat("a=>", 5400) + "1", ""},
	{"16 KB of powers", strings.Repeat("1**", 5400) + "1", ""},
	{"16 KB of sums", strings.Repeat("1+", 8000) + "1", ""},
	{"16 KB of new", strings.Repeat("new ", 4000) + "Array", ""},
	{"JSON.parse of 5M brackets", `JSON.parse('['.repeat(5000000))`, "memory timeout"},
	{"repeat to 1 GiB", `'x'.repeat(2 ** 30)`, "memory timeout"},
	{"repeat to 4 GiB", `'x'.repeat(2 ** 32)`, "memory timeout plugin"},
	{"50M elements", `new Array(5e7).fill(1).reverse().join()`, "memory timeout"},
	{"spread", `[...Array(5e8).keys()].length`, "memory timeout"},
	{"growing list", `(() => { let a = []; for (;;) a.push('x'.repeat(1e4) + a.length) })()`, "memory timeout"},
	{"doubling text", `(() => { let s = 'x'; for (;;) s += s })()`, "memory timeout plugin"},
	{"BigInt shift", `1n << 4000000000n`, "memory timeout plugin"},
	{"BigInt power", `(3n ** 30000000n) > 1n`, "memory timeout"},
	{"endless loop", `(() => { for (;;); })()`, "timeout"},
	{"lookahead", `/^(?=a)(a|aa)+$/.test('a'.repeat(60) + 'b')`, "timeout"},
	{"back-reference", `/^(a+)+\1b$/.test('a'.repeat(60))`, "timeout"},
	{"recursion through forEach", `(function f() { [1].forEach(f) })()`, "limit"},
	{"recursion through toString", `(() => { let o = { toString() { return '' + o } }; return '' + o })()`, "limit plugin"},
	{"recursion through replace", `(function f() { return 'a'.replace(/a/, f) })()`, "limit"},
	{"nested lists joined", `(() => { let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return '' + a })()`, "memory timeout limit"},
	{"nested lists as a result", `(() => { let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a })()`, "memory timeout limit"},
	{"endless getter of a thrown value", `(() => { throw { toString() { for (;;); } } })()`, "timeout"},
	{"endless toJSON", `({ toJSON() { for (;;); } })`, "timeout"},
	{"sort", `Array.from({ length: 3e6 }, (_, i) => -i).sort().length`, "memory timeout"},
	{"huge sparse list", `(() => { let a = []; a[4294967294] = 1; return a.join().length })()`, "memory timeout plugin limit"},
	{"typed array", `'x'.padStart(2e9)`, "memory timeout plugin"},
}

func TestHostileSources(t *testing.T) {
	limit := 150 * time.Millisecond
	if raceEnabled {
		limit = 500 * time.Millisecond
	}
	e := open(t, cond.Options{ChildTimeout: limit})
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, k := range hostileSources {
		v, err := eval(t, e, k.src, nil)
		if k.codes == "" {
			// The source is long but valid: any result is allowed, except a
			// crashed or silent process.
			if code := abi.CodeOf(err); code == abi.Internal || code == abi.Unavailable {
				t.Errorf("%s: %v", k.name, err)
			}
			continue
		}
		if code := abi.CodeOf(err); err == nil || !strings.Contains(k.codes, string(code)) {
			t.Errorf("%s: %.80s %v (%s); want an error of %s", k.name, v.JSON, err, abi.CodeOf(err), k.codes)
		}
		if cond.Fast(k.src) {
			t.Errorf("%s: the fast path accepts it", k.name)
		}
		// Parsing alone must be safe too.
		if err := check(e, k.src); abi.CodeOf(err) == abi.Internal || abi.CodeOf(err) == abi.Unavailable {
			t.Errorf("check %s: %v", k.name, err)
		}
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
		t.Errorf("the host grew by %d MB", grown>>20)
	}
	var usage syscall.Rusage
	if runtime.GOOS == "linux" && !raceEnabled && syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage) == nil {
		if mb := usage.Maxrss >> 10; mb > 400 {
			t.Errorf("a child grew to %d MB", mb)
		}
	}
	// The evaluator still works.
	if v, err := eval(t, e, `[1].some(x => x)`, nil); err != nil || !v.Truthy {
		t.Errorf("after the hostile sources: %v %v", v, err)
	}
}

// The most expensive sources of the fast path end within its limits.
func TestFastPathIsBounded(t *testing.T) {
	e := cond.New(cond.Options{})
	defer e.Close()
	text := `"` + strings.Repeat("a", 60<<10) + `"`
	wide := `"` + strings.Repeat("é", 14<<10) + `"`
	needle := `"` + strings.Repeat("é", 7<<10) + `x"`
	list := "[" + strings.Repeat("0,", 30<<10) + "0]"
	for _, r := range []struct {
		name, src string
		vars      values
		code      abi.Code // "" for a value
	}{
		// 340 uses of 60 KB would be joined to 20 MB, which needs a child.
		{"joined text", strings.Repeat("$a+", 300) + "$a", values{"a": text}, abi.Unavailable},
		{"searched list", `$a.indexOf(1) + $b`, values{"a": list, "b": "1"}, ""},
		{"searched text", `$a.includes($b)`, values{"a": wide, "b": needle}, ""},
		{"deep data", `$a`, values{"a": strings.Repeat("[", 100) + strings.Repeat("]", 100)}, abi.Unavailable},
		{"large data", `$a`, values{"a": `"` + strings.Repeat("a", 70<<10) + `"`}, abi.Unavailable},
		{"larger than a child accepts", `$a`, values{"a": `"` + strings.Repeat("a", 32<<20) + `"`}, abi.Limit},
		{"deeper than a child accepts", `$a`, values{"a": strings.Repeat("[", 2000) + strings.Repeat("]", 2000)}, abi.Limit},
		{"remainder", `1e308 % 3e-308`, nil, ""},
		{"digits", `'' + 1e-300 + 1.2345678901234568e20`, nil, ""},
		{"grown letters", `$a.toUpperCase().toLowerCase().toUpperCase()`, values{"a": `"` + strings.Repeat("ΐ", 10<<10) + `"`}, ""},
	} {
		_, err := eval(t, e, r.src, r.vars)
		if abi.CodeOf(err) != r.code {
			t.Errorf("%s: %v (%s), want %q", r.name, err, abi.CodeOf(err), r.code)
		}
	}
	// A timeout is an error, never a value, and discards one VM.
	e2 := cond.New(cond.Options{FastTimeout: time.Nanosecond, ChildTimeout: time.Nanosecond})
	defer e2.Close()
	src := strings.Repeat("$a==$a&&", 60) + "1"
	failed := false
	for range 50 {
		v, err := eval(t, e2, src, values{"a": list})
		if err != nil && abi.CodeOf(err) != abi.Timeout || err == nil && !v.Truthy {
			t.Fatalf("%v %v", v, err)
		}
		failed = failed || err != nil
	}
	if !failed {
		t.Error("no evaluation was interrupted")
	}
	// The first timeout alone is not an error: it includes time in which the
	// process did not run.
	e3 := cond.New(cond.Options{FastTimeout: time.Nanosecond, ChildTimeout: time.Minute})
	defer e3.Close()
	for range 50 {
		if v, err := eval(t, e3, src, values{"a": list}); err != nil || !v.Truthy {
			t.Fatalf("a valid condition in a busy process: %v %v", v, err)
		}
	}
}
