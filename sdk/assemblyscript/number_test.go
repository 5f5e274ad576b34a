package assemblyscript_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

func TestMain(m *testing.M) {
	guest.ServeChild() // the loader compiles in a child, which is this binary
	os.Exit(m.Run())
}

// numbers is a plugin that returns asInt and isInt of a field.
const numbers = `import { Context, Outcome, Step, Value, object, ok, plugin, text, bool_ } from "./sdk";

plugin("numbers", "1.0.0").step(new Step("numbers", "Reads a number.", '{"type":"object"}', run));

function run(c: Context): Outcome<Value> {
  const n = c.field("n");
  if (c.field("ask").asBool()) return ok(bool_(n.isInt));
  return ok(text(n.asInt(-7).toString()));
}
`

// TestInt checks that a whole number is read exactly or is an error.
func TestInt(t *testing.T) {
	m := load(t, numbers)
	for _, c := range []struct {
		number, want string // want is empty for a RangeError
		whole        bool
	}{
		{`0`, "0", true},
		{`-0`, "0", true},
		{`42`, "42", true},
		{`-42`, "-42", true},
		{`1.9`, "1", false},
		{`-1.9`, "-1", false},
		{`1.0`, "1", true},
		{`1e3`, "1000", true},
		{`1.5E+1`, "15", true},
		{`0.0015e3`, "1", false},
		{`1500e-2`, "15", true},
		{`1e-999999999999`, "0", false},
		{`0e999999999999`, "0", true},
		{`9007199254740993.0`, "9007199254740993", true}, // not an f64
		{`9223372036854775807`, "9223372036854775807", true},
		{`922337203685477580.7e1`, "9223372036854775807", true},
		{`9223372036854775807.5`, "9223372036854775807", false},
		{`-9223372036854775808`, "-9223372036854775808", true},
		{`9223372036854775808`, "", false},
		{`-9223372036854775809`, "", false},
		{`18446744073709551617`, "", false}, // 1, with the high bits lost
		{`99999999999999999999999999999999`, "", false},
		{`9.3e18`, "", false},
		{`1e19`, "", false},
		{`1e400`, "", false},
		{`-1e99999999999999999999`, "", false},
		{`"5"`, "-7", false},
		{`null`, "-7", false},
	} {
		out, err := step(t, m, `{"n":`+c.number+`}`)
		switch {
		case c.want != "" && out != `"`+c.want+`"`:
			t.Errorf("asInt of %s: %s, %v, want %s", c.number, out, err, c.want)
		case c.want == "" && (abi.CodeOf(err) != abi.Trap || !strings.Contains(err.Error(), "i64")):
			t.Errorf("asInt of %s: %s, %v, want an error about i64", c.number, out, err)
		}
		if out, err := step(t, m, `{"n":`+c.number+`,"ask":true}`); out != strconv.FormatBool(c.whole) {
			t.Errorf("isInt of %s: %s, %v, want %t", c.number, out, err, c.whole)
		}
	}
}

// load builds a plugin from one file and loads it as a host does.
func load(t *testing.T, source string) *guest.Module {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"plugin.json": `{"language":"assemblyscript","name":"numbers"}`, "plugin.ts": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := toolchain.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	toolchaintest.Need(t, p.Language)
	var said bytes.Buffer
	if err := p.Build(t.Context(), p.Module(), &said); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	module, err := os.ReadFile(p.Module())
	if err != nil {
		t.Fatal(err)
	}
	host, err := guest.Open(guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := host.Load(t.Context(), module, guest.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Release()
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// step executes the plugin's step and returns its output or its error.
func step(t *testing.T, m *guest.Module, fields string) (string, error) {
	t.Helper()
	res, err := m.Run(t.Context(), guest.Invocation{
		Input:   fmt.Appendf(nil, `{"abi":1,"step":{"type":"numbers","address":"0","path":"1#0","fields":%s},"run":{"id":"r","sentinel":"x","iteration":1,"workspace":"/w","key":"k"},"attempt":1}`, fields),
		Compute: time.Minute,
	})
	return string(res.Output), err
}
