package sdktest_test

import (
	"fmt"
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
func failing(f func(t testing.TB)) string {
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
	said := failing(func(t testing.TB) {
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
	said = failing(func(t testing.TB) {
		sdktest.Run(t, step(func(*sdk.Context) (sdk.Value, error) { n++; return sdk.Int(n), nil }), "s", `{}`, sdktest.New(t))
	})
	if !strings.Contains(said, "replay from the start: it ended with") {
		t.Errorf("said %q", said)
	}
}

func TestScriptIsChecked(t *testing.T) {
	emit := step(func(c *sdk.Context) (sdk.Value, error) { _, err := c.Emit("e", sdk.Value{}); return sdk.Null(), err })
	if said := failing(func(t testing.TB) { sdktest.Run(t, emit, "s", `{}`, sdktest.New(t)) }); !strings.Contains(said, "no scripted answer left") {
		t.Errorf("a call without an answer: %q", said)
	}
	said := failing(func(t testing.TB) {
		sdktest.Run(t, emit, "s", `{}`, sdktest.New(t).OK("sentinel_emit", `{"id":"1"}`, `{"id":"2"}`))
	})
	if !strings.Contains(said, "1 scripted answers were not used") {
		t.Errorf("an answer without a call: %q", said)
	}
}

func TestManifestFaults(t *testing.T) {
	p := sdk.Plugin{Name: "Bad", Steps: []sdk.Step{{
		Type:    "s",
		Fields:  `{"type":"object","properties":{"a":{"x-sentinel":"odd"},"onError":{"description":"d"}},"required":["b"]}`,
		Infer:   []string{"c"},
		Aliases: map[string]string{"a": "b"},
	}, {Type: "s", Summary: "S.", Fields: `{}`}}, Permissions: []sdk.Permission{{Use: sdk.UseLLM}}}
	said := failing(func(t testing.TB) { sdktest.Manifest(t, p) })
	for _, want := range []string{
		`plugin name "Bad"`, `no version`, `no summary`, `field "onError" belongs to the host`, `field "a": no description`,
		`unknown mark "odd"`, `required field "b"`, `alias "a"`, `infer "c"`, `duplicate, or does not match`, `want a JSON Schema`, `no reason`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("did not say %q:\n%s", want, said)
		}
	}
}
