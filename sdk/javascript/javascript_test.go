package javascript_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/javascript"
)

// loader has compiled the engine once for all tests of this process.
var loader *guest.Host

func TestMain(m *testing.M) {
	guest.ServeChild() // the loader compiles in a child, which is this binary
	dir, err := os.MkdirTemp("", "javascript")
	if err != nil {
		panic(err)
	}
	if loader, err = guest.Open(guest.Options{CacheDir: dir}); err != nil {
		panic(err)
	}
	code := m.Run()
	loader.Close()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// load builds a plugin from a script and loads it as a host does.
func load(t *testing.T, script string) (*guest.Module, error) {
	t.Helper()
	module, err := javascript.Module("plugin.js", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	m, err := loader.Load(t.Context(), module, guest.LoadOptions{})
	if err == nil {
		t.Cleanup(m.Release)
	}
	return m, err
}

// plugin is a script whose one step type, s, has this function as its run.
func plugin(run string) string {
	return `sentinel.plugin({name: "p", version: "1", steps: {s: {summary: "S.", fields: {type: "object"}, run: ` + run + `}}});`
}

// plugins is a script with a step type for each of these functions, so that it is compiled
// only once.
func plugins(runs map[string]string) string {
	var steps strings.Builder
	for name, run := range runs {
		fmt.Fprintf(&steps, "%s: {summary: \"S.\", fields: {type: \"object\"}, run: %s},\n", name, run)
	}
	return "sentinel.plugin({name: \"p\", version: \"1\", steps: {\n" + steps.String() + "}});"
}

// step executes a step and returns its output, its error and the calls it made.
func step(t *testing.T, m *guest.Module, name, fields string) (string, *abi.Error, []string) {
	t.Helper()
	var calls []string
	res, err := m.Run(t.Context(), guest.Invocation{
		Input: fmt.Appendf(nil, `{"abi":1,"step":{"type":%q,"address":"0","path":"1#0","fields":%s},"run":{"id":"r","sentinel":"x","iteration":1,"workspace":"/w","key":"k"},"attempt":1}`, name, fields),
		Seed:  7, ClockBase: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Compute: time.Minute,
		Call: func(_ context.Context, function string, request []byte) (guest.Reply, error) {
			calls = append(calls, function+" "+string(request))
			return guest.Reply{Body: []byte(`{"ok":{"value":1,"found":true}}`)}, nil
		},
	})
	if err != nil {
		fault := abi.As(err)
		if fault == nil {
			t.Fatalf("an error without a code: %v", err)
		}
		return "", fault, calls
	}
	return string(res.Output), nil, calls
}

func TestRun(t *testing.T) {
	cases := map[string]struct{ run, fields, want string }{
		"texts":      {`(s) => s.fields`, `{"a":"é ✓ 𝄞 \u0000 \"","":[]}`, `{"a":"é ✓ 𝄞 \u0000 \"","":[]}`},
		"numbers":    {`(s) => s.fields`, `[9007199254740991,-0.1,1e21,0.1]`, `[9007199254740991,-0.1,1e+21,0.1]`},
		"surrogate":  {`() => "\ud800"`, `{}`, `"\ud800"`},
		"nothing":    {`() => {}`, `{}`, `null`},
		"async":      {`async () => { await null; return (await Promise.all([1, 2])).length; }`, `{}`, `2`},
		"a_call":     {`(s, ctx) => ctx.getVar("x")`, `{}`, `{"value":1,"found":true}`},
		"time":       {`() => new Date().toISOString().slice(0, 19)`, `{}`, `"2026-01-01T00:00:00"`},
		"own_fields": {`(s) => s.fields.__proto__`, `{"__proto__":1}`, `1`},
		"regexp":     {`() => "a1b22".replace(/(?<n>\d+)/gu, "[$<n>]")`, `{}`, `"a[1]b[22]"`},
	}
	runs := map[string]string{}
	for name, c := range cases {
		runs[name] = c.run
	}
	m, err := load(t, plugins(runs))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		out, fault, _ := step(t, m, name, c.fields)
		if fault != nil || out != c.want {
			t.Errorf("%s: got %s, error %v, want %s", name, out, fault, c.want)
		}
	}
}

// TestErrors checks the code, the position and the message of errors for everything that a
// step can throw.
func TestErrors(t *testing.T) {
	cases := map[string]struct {
		run  string
		want abi.Error // of the message a part
	}{
		"its_own": {`() => { throw new SentinelError("conflict", "é ✓", {hint: "h", retryAfterMs: 5}); }`,
			abi.Error{Code: abi.Conflict, Message: "é ✓", Hint: "h", RetryAfterMs: 5}},
		"a_field": {`() => { throw SentinelError.badField("a", "is bad"); }`, abi.Error{Code: abi.BadFields, Message: "a: is bad", Field: "a", Permanent: true}},
		"an_unknown_code": {`() => { throw new SentinelError("nonsense", "x"); }`,
			abi.Error{Code: abi.Plugin, Message: "x"}},
		"a_bug":    {"(s) =>\n  s.nope.x", abi.Error{Code: abi.Trap, Message: ": TypeError: cannot read property 'x' of undefined at run (plugin.js:", Permanent: true}},
		"an_error": {`() => { throw new Error("no such row"); }`, abi.Error{Code: abi.Plugin, Message: ": no such row at run (plugin.js:"}},
		"a_text":   {`() => { throw "words"; }`, abi.Error{Code: abi.Plugin, Message: ": words"}},
		"nothing":  {`() => { throw undefined; }`, abi.Error{Code: abi.Plugin, Message: ": undefined"}},
		"rejected": {`async () => { await null; throw new SentinelError("timeout", "late"); }`, abi.Error{Code: abi.Timeout, Message: "late"}},
		"never":    {`() => new Promise(() => {})`, abi.Error{Code: abi.Plugin, Message: "awaits a promise that never settles", Permanent: true}},
		"not_json": {`() => { const a = {}; a.a = a; return a; }`, abi.Error{Code: abi.Trap, Message: "circular reference", Permanent: true}},
		"big":      {`() => 1n`, abi.Error{Code: abi.Trap, Message: "TypeError", Permanent: true}},
		"depth":    {`function f() { return 1 + f(); }`, abi.Error{Code: abi.Trap, Message: "stack overflow", Permanent: true}},
		"brackets": {`() => JSON.parse("[".repeat(200000))`, abi.Error{Code: abi.Trap, Message: "stack overflow", Permanent: true}},
		"memory":   {`() => { const a = []; for (;;) a.push(new ArrayBuffer(1e6)); }`, abi.Error{Code: abi.Memory, Message: ": out of memory", Permanent: true}},
		"not_asked": {`(s, ctx) => ctx.http("https://example.com")`,
			abi.Error{Code: abi.Denied, Message: "does not request", Hint: `add {use: "http", reason: "..."} to the plugin's permissions, literally`}},
		"an_import": {`async () => import("fs")`, abi.Error{Code: abi.Trap, Message: "a plugin is one file", Permanent: true}},
	}
	runs := map[string]string{}
	for name, c := range cases {
		runs[name] = c.run
	}
	m, err := load(t, plugins(runs))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		out, fault, _ := step(t, m, name, `{}`)
		if fault == nil {
			t.Errorf("%s: no error, output %s", name, out)
			continue
		}
		got := *fault
		if strings.Contains(got.Message, c.want.Message) {
			got.Message = c.want.Message
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestLoadRefuses checks that describe, which is called right after a build, reports invalid
// scripts. Each script is a module to compile, so the short form tests one that does not compile,
// one that does not register, and one whose plugin is wrong.
func TestLoadRefuses(t *testing.T) {
	short := []string{"let a =\n  1 +;", "1;", plugin("1")}
	for script, want := range map[string]string{
		"let a =\n  1 +;":                  "SyntaxError: unexpected token in expression: ';' at plugin.js:2:6",
		"1;":                               "does not call sentinel.plugin",
		"throw new Error('early')":         "early at <anonymous> (plugin.js:1:",
		"await new Promise(() => {})":      "awaits a promise that never settles",
		"import 'fs'":                      "import of 'fs': a plugin is one file",
		"sentinel.plugin({name: 'P'})":     `name "P": want lower_snake`,
		"sentinel.plugin({name: 'p'})":     "version",
		plugin("() => 1") + plugin("x=>1"): "called twice",
		plugin("1"):                        "run is not a function",
		strings.Replace(plugin("() => 1"), `"S."`, `""`, 1):                                                                       "summary",
		strings.Replace(plugin("() => 1"), "{type: \"object\"}", "{}", 1):                                                         "fields is not a JSON Schema of type object",
		strings.Replace(plugin("() => 1"), "steps:", "permissions: [{use: 'ht' + 'tp', names: ['a.b'], reason: 'r'}], steps:", 1): `use http: the build did not find the text`,
		strings.Replace(plugin("() => 1"), "steps:", "permissions: [{use: 'llm'}], steps:", 1):                                    "with a reason",
		strings.Replace(plugin("() => 1"), "steps:", "notes: {use: 'llm'}, steps:", 1):                                            `asking for "llm"`,
		"for (;;);": "more than its time limit",
	} {
		if testing.Short() && !slices.Contains(short, script) {
			continue
		}
		_, err := load(t, script)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n  got %v\n  want %q", script, err, want)
		}
	}
}

// TestImports checks that a plugin imports only the functions that it requests, and those
// that need no grant.
func TestImports(t *testing.T) {
	permissions := `permissions: [{use: "http", names: ["a.example.com"], reason: "r"}, {"use" : 'command', names: ["code/*"], reason: "r"}], steps:`
	script := strings.Replace(plugin("() => 1"), "steps:", permissions, 1)
	module, err := javascript.Module("plugin.js", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	info, err := guest.Inspect(module)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, im := range info.Imports {
		if im.Module == abi.Namespace {
			got = append(got, im.Name)
		}
	}
	want := []string{abi.FuncCommand, abi.FuncEval, abi.FuncVar, abi.FuncBlock, abi.FuncWait, abi.FuncCheckpoint, abi.FuncHTTP, abi.FuncLog, abi.FuncNow}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("imports (-want +got):\n%s", diff)
	}
	m, err := load(t, script)
	if err != nil {
		t.Fatal(err)
	}
	if asked := m.Manifest().Permissions; len(asked) != 2 || asked[0].Use != "http" || asked[1].Names[0] != "code/*" {
		t.Errorf("permissions: %+v", asked)
	}
}

// TestLogs checks that console works from the first line on, and that no line is lost.
func TestLogs(t *testing.T) {
	m, err := load(t, `console.log("early", {a: 1});`+plugin(`(s, ctx) => { console.warn(new Error("é")); ctx.debug([1], undefined); }`))
	if err != nil {
		t.Fatal(err)
	}
	_, fault, calls := step(t, m, "s", `{}`)
	if fault != nil || len(calls) != 3 {
		t.Fatalf("calls %q, error %v", calls, fault)
	}
	for i, want := range []string{
		`sentinel_log {"level":"info","message":"early {\"a\":1}"}`,
		`sentinel_log {"level":"warn","message":"Error: é\n    at run (plugin.js:1:`,
		`sentinel_log {"level":"debug","message":"[1] undefined"}`,
	} {
		if !strings.HasPrefix(calls[i], want) {
			t.Errorf("call %d: got %s, want %s", i, calls[i], want)
		}
	}
}

// TestRandom checks that random numbers depend only on the seed of the attempt.
func TestRandom(t *testing.T) {
	m, err := load(t, plugin(`() => [Math.random(), Math.random(), Date.now()]`))
	if err != nil {
		t.Fatal(err)
	}
	first, fault, _ := step(t, m, "s", `{}`)
	again, _, _ := step(t, m, "s", `{}`)
	if fault != nil || first != again {
		t.Errorf("%s, then %s, error %v", first, again, fault)
	}
	var n []float64
	if err := json.Unmarshal([]byte(first), &n); err != nil || n[0] == n[1] || n[0] <= 0 || n[0] >= 1 {
		t.Errorf("%s: %v", first, err)
	}
}

func TestValidate(t *testing.T) {
	script := `sentinel.plugin({name: "p", version: "1", steps: {s: {summary: "S.", fields: {type: "object"}, run() {}, validate(f) {
		if (f.a === "list") return [{field: "a", message: "is bad", hint: "use good"}];
		if (f.a === "throw") throw SentinelError.badField("a", "is bad", "use good");
		if (f.a === "bug") null.x;
	}}}});`
	m, err := load(t, script)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string][]guest.Problem{
		"list": {{Field: "a", Message: "is bad", Hint: "use good"}}, "throw": {{Field: "a", Message: "is bad", Hint: "use good"}}, "good": nil,
	} {
		got, err := m.Validate(t.Context(), "s", fmt.Appendf(nil, `{"a":%q}`, value))
		if err != nil || len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: %+v, %v", value, got, err)
		}
	}
	var fault *abi.Error
	if _, err := m.Validate(t.Context(), "s", []byte(`{"a":"bug"}`)); !errors.As(err, &fault) || fault.Code != abi.Trap {
		t.Errorf("a bug: %v", err)
	}
}

// TestLoop checks that the host can end a loop in a script and in the code of the engine.
func TestLoop(t *testing.T) {
	m, err := load(t, plugin(`(s) => { if (s.fields.re) return /^(a+)+$/.test("a".repeat(64) + "b"); for (;;); }`))
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range []string{`{}`, `{"re":true}`} {
		_, err := m.Run(t.Context(), guest.Invocation{
			Input:   fmt.Appendf(nil, `{"abi":1,"step":{"type":"s","address":"0","path":"1#0","fields":%s},"run":{},"attempt":1}`, fields),
			Compute: 300 * time.Millisecond,
		})
		if abi.CodeOf(err) != abi.Timeout {
			t.Errorf("%s: %v", fields, err)
		}
	}
}

// TestHelper runs the tests of the helper for node.
func TestHelper(t *testing.T) {
	if err := exec.Command("node", "--version").Run(); err != nil {
		t.Skipf("the helper is not tested: node --version: %v; `make toolchains` installs it", err)
	}
	if out, err := exec.Command("node", "--test", "testing.test.mjs").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
