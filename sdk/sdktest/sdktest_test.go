package sdktest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// fake collects the messages of a failing test.
type fake struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (f *fake) Helper()          {}
func (f *fake) Failed() bool     { return len(f.said) > 0 }
func (f *fake) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fake) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

// Fatalf ends the goroutine of the step, as testing does.
func (f *fake) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(stop{})
}

type stop struct{}

// failing runs f as a test and returns its messages.
func failing(f func(t sdktest.T)) string {
	t := &fake{}
	func() {
		defer func() {
			if r := recover(); r != nil && r != (stop{}) {
				panic(r)
			}
		}()
		f(t)
	}()
	for _, c := range t.cleanups {
		c()
	}
	return strings.Join(t.said, "\n")
}

func step(run func(*sdk.Context) (sdk.Value, error)) sdk.Plugin {
	return sdktest.Only(sdk.Step{Type: "s", Summary: "S.", Fields: `{"type":"object"}`, Run: run})
}

func TestNonDeterminismIsFound(t *testing.T) {
	n := int64(0)
	said := failing(func(t sdktest.T) {
		h := sdktest.New(t).OK("sentinel_emit", `{"id":"1"}`)
		sdktest.Run(t, step(func(c *sdk.Context) (sdk.Value, error) {
			n++
			_, err := c.Emit("e", sdk.Int(n))
			return sdk.Null(), err
		}), "s", `{}`, h)
	})
	if !strings.Contains(said, "replay from the start: call 1 was sentinel_emit") {
		t.Errorf("said %q", said)
	}
	said = failing(func(t sdktest.T) {
		sdktest.Run(t, step(func(*sdk.Context) (sdk.Value, error) { n++; return sdk.Int(n), nil }), "s", `{}`, sdktest.New(t))
	})
	if !strings.Contains(said, "replay from the start: it ended with") {
		t.Errorf("said %q", said)
	}
}

func TestScriptIsChecked(t *testing.T) {
	emit := step(func(c *sdk.Context) (sdk.Value, error) { _, err := c.Emit("e", sdk.Value{}); return sdk.Null(), err })
	if said := failing(func(t sdktest.T) { sdktest.Run(t, emit, "s", `{}`, sdktest.New(t)) }); !strings.Contains(said, "no scripted answer left") {
		t.Errorf("a call without an answer: %q", said)
	}
	said := failing(func(t sdktest.T) {
		sdktest.Run(t, emit, "s", `{}`, sdktest.New(t).OK("sentinel_emit", `{"id":"1"}`, `{"id":"2"}`))
	})
	if !strings.Contains(said, "1 scripted answers were not used") {
		t.Errorf("an answer without a call: %q", said)
	}
}

// TestStrictAnswers checks that a fake with a request answers only calls that match it.
func TestStrictAnswers(t *testing.T) {
	emit := step(func(c *sdk.Context) (sdk.Value, error) {
		_, first := c.Emit("a", sdk.Int(1))
		id, second := c.Emit("b", sdk.Int(2))
		return sdk.String(id), errors.Join(first, second)
	})
	fakes := []sdktest.Fake{
		{Function: "emit", Request: json.RawMessage(`{"event":"b"}`), OK: json.RawMessage(`{"id":"second"}`)},
		{Function: "emit", OK: json.RawMessage(`{"id":"first"}`)},
	}
	out, fault := sdktest.Run(t, emit, "s", `{}`, sdktest.New(t).Add(fakes...))
	if fault != nil || out.String() != `"second"` {
		t.Errorf("%s %v", out, fault)
	}
	for want, f := range map[string]sdktest.Fake{
		`unknown host function "sentinel_fly"`: {Function: "fly", OK: json.RawMessage(`1`)},
		"either ok or error":                   {Function: "emit"},
	} {
		if said := failing(func(t sdktest.T) { sdktest.New(t).Add(f) }); !strings.Contains(said, want) {
			t.Errorf("%+v: %q", f, said)
		}
	}
}

// A call without an answer ends the step at once, although the step handles the error.
func TestNoAnswerEndsTheStep(t *testing.T) {
	calls := 0
	said := failing(func(t sdktest.T) {
		sdktest.Run(t, step(func(c *sdk.Context) (sdk.Value, error) {
			for {
				calls++
				if _, err := c.Emit("e", sdk.Value{}); err == nil {
					return sdk.Null(), nil
				}
			}
		}), "s", `{}`, sdktest.New(t))
	})
	if calls != 1 || !strings.Contains(said, "sentinel_emit: no scripted answer left") {
		t.Errorf("%d calls, said %q", calls, said)
	}
}

// counter emits the numbers below 3 with a checkpoint after each.
func counter(start func(*sdk.Context) int64) sdk.Plugin {
	return step(func(c *sdk.Context) (sdk.Value, error) {
		for i := start(c); i < 3; i++ {
			c.Info("number " + strconv.FormatInt(i, 10))
			if _, err := c.Emit("e", sdk.Int(i)); err != nil {
				return sdk.Value{}, err
			}
			if err := c.Checkpoint(sdk.Int(i + 1)); err != nil {
				return sdk.Value{}, err
			}
		}
		return sdk.Int(3), nil
	})
}

// TestResume checks that a native step is resumed from its checkpoints.
func TestResume(t *testing.T) {
	answers := []string{`{"id":"1"}`, `{"id":"2"}`, `{"id":"3"}`}
	h := sdktest.New(t).OK("sentinel_emit", answers...)
	out, fault := sdktest.Run(t, counter(func(c *sdk.Context) int64 { return c.State.IntOr(0) }), "s", `{}`, h)
	if fault != nil || out.String() != "3" || len(h.Calls()) != 6 || len(h.Logs()) != 3 || h.Logs()[2] != (sdktest.Line{Level: "info", Message: "number 2"}) {
		t.Errorf("%s %v, calls %v, logs %v", out, fault, h.Calls(), h.Logs())
	}
	said := failing(func(t sdktest.T) {
		h := sdktest.New(t).OK("sentinel_emit", answers...)
		sdktest.Run(t, counter(func(*sdk.Context) int64 { return 0 }), "s", `{}`, h)
	})
	if !strings.Contains(said, "resume from checkpoint 1, call 2: call 3 was") || !strings.Contains(said, "A6.17") {
		t.Errorf("said %q", said)
	}
}

// casesT records which cases are skipped.
type casesT struct {
	*fake
	name    string
	skipped []string
}

func (c *casesT) Run(name string, f func(*casesT)) bool {
	defer func() {
		if r := recover(); r != nil && r != (stop{}) {
			panic(r)
		}
	}()
	c.name = name
	f(c)
	return true
}

func (c *casesT) Skipf(string, ...any) {
	c.skipped = append(c.skipped, c.name)
	panic(stop{})
}

// TestCases executes the format of `sentinel plugin test` natively.
func TestCases(t *testing.T) {
	p := sdktest.Only(sdk.Step{
		Type: "s", Summary: "S.", Aliases: map[string]string{"word": "text"},
		Fields: `{"type":"object","properties":{"text":{"type":"string"},"steps":{"x-sentinel":"steps"},"branches":{"x-sentinel":"branches"}}}`,
		Run: func(c *sdk.Context) (sdk.Value, error) {
			c.Info("text " + c.Field("text").StringOr(""))
			return sdk.List(c.Field("text"), c.Field("steps"), c.Field("branches")), nil
		},
		Validate: func(fields sdk.Value) []sdk.Problem {
			if fields.Get("text").Exists() {
				return nil
			}
			return []sdk.Problem{{Field: "text", Message: "missing"}}
		},
	})
	sdktest.Cases(t, p, filepath.Join("testdata", "cases.json"))
	recorded := &casesT{fake: &fake{}}
	sdktest.Cases(recorded, p, filepath.Join("testdata", "failing.json"))
	if want := []string{"refused by the schema"}; !slices.Equal(recorded.skipped, want) || len(recorded.said) != 1 {
		t.Errorf("skipped %q, want %q; said %q", recorded.skipped, want, recorded.said)
	}
	for text, want := range map[string]string{
		`{"name":"n","step":{"type":"s"},"output":[],"logs":["text","lost"]}`:                    `no line contains "lost"`,
		`{"name":"n","step":{"type":"s","fields":{"text":"a"}},"output":["b"]}`:                  `output[0]: want "b", got "a"`,
		`{"name":"n","step":{"type":"s"},"problems":[]}`:                                         "problems[0]: want nothing",
		`{"name":"n","step":{"type":"s"},"calls":[{"function":"emit","ok":{}}],"logs":["text"]}`: "call 1, sentinel_emit, was not made",
		`{"name":"n","step":{"type":"s"},"error":{"code":"timeout"}}`:                            "want the error timeout, got the output",
		`{"name":"n","step":{"type":"other"},"error":{"code":"timeout"}}`:                        `error.code: want "timeout", got "bad_fields"`,
	} {
		cases, err := sdktest.ReadCases([]byte("[" + text + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if r := sdktest.Try(t.Context(), sdktest.Native(p), cases[0]); r.OK || !strings.Contains(strings.Join(r.Problems, "\n"), want) {
			t.Errorf("%s: %q, want %q", text, r.Problems, want)
		}
	}
}

func TestManifestFaults(t *testing.T) {
	p := sdk.Plugin{Name: "Bad", Steps: []sdk.Step{{
		Type:    "s",
		Fields:  `{"type":"object","properties":{"a":{"x-sentinel":"odd"},"onError":{"description":"d"},"timeoutMs":{"description":"d"}},"required":["b"]}`,
		Infer:   []string{"c"},
		Aliases: map[string]string{"a": "b"},
	}, {Type: "s", Summary: "S.", Fields: `{}`}}, Permissions: []sdk.Permission{{Use: sdk.UseLLM}}}
	said := failing(func(t sdktest.T) { sdktest.Manifest(t, p) })
	for _, want := range []string{
		`plugin name "Bad"`, `no version`, `no summary`, `field "onError" belongs to the host`, `field "a": no description`,
		`unknown mark "odd"`, `required field "b"`, `alias "a"`, `infer "c"`, `duplicate, or does not match`, `want a JSON Schema`, `no reason`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("did not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "timeoutMs") {
		t.Errorf("a type may have a timeoutMs of its own:\n%s", said)
	}
}
