// Package tests builds the step types that are written without an SDK, and holds
// them to their cases and to the clauses of sdk/ABI.md.
package tests

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/plugin/plugintest"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// TestMain lets this test program be started again as the child that compiles
// plugins.
func TestMain(m *testing.M) {
	guest.ServeChild()
	os.Exit(m.Run())
}

// build returns the module that a README command makes of a source. A tool that
// is missing skips the test, or fails it where CI promises the tool.
func build(t *testing.T, install string, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		toolchaintest.Missing(t, errors.Join(err, errors.New(install)))
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if line := strings.Join(args, " ") + " -o "; !strings.Contains(string(readme), line) {
		t.Errorf("README.md does not have the command %q", line)
	}
	out := filepath.Join(t.TempDir(), "module.wasm")
	cmd := exec.Command(args[0], append(args[1:], "-o", out)...)
	cmd.Dir = ".."
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, said)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func TestWAT(t *testing.T) {
	check(t, "variable_or", `[1]`, build(t, "apt-get install wabt", "wat2wasm", "variable_or.wat"))
}

func TestC(t *testing.T) {
	c, err := toolchain.Lookup("c")
	if err != nil {
		t.Fatal(err)
	}
	toolchaintest.Need(t, c)
	check(t, "http_status", `{"url":"https://example.com","status":200,"up":true}`, build(t, "apt-get install clang lld", "clang", "--target=wasm32", "-ffreestanding", "-nostdlib", "-Oz",
		"-Wall", "-Werror", "-Wl,--no-entry,--strip-all", "http_status.c"))
}

// check runs the cases of a module and the conformance kit. Modules of this size
// show that nothing of an SDK or a C library is in them.
func check(t *testing.T, name, output string, module []byte) {
	t.Helper()
	if len(module) > 4<<10 {
		t.Errorf("the module has %d bytes", len(module))
	}
	h, err := guest.Open(guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, o := range abitest.Check(t.Context(), guest.Kit(h, guest.LoadOptions{}), module) {
		if len(o.Faults) > 0 || o.Skipped != "" {
			t.Errorf("%s %s: %v %s", o.Clause, o.Name, o.Faults, o.Skipped)
		}
	}
	p, err := plugintest.Load(t.Context(), h, module, guest.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	text, err := os.ReadFile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := sdktest.ReadCases(text)
	if err != nil || len(cases) < 4 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		if r := sdktest.Try(t.Context(), p, c); !r.OK {
			t.Errorf("%s: %v", r.Name, r.Problems)
		}
	}
	missing(t, p, name)
	spaced(t, p, name, output)
}

// missing runs a step whose field is absent, which the schema would refuse: the
// guest's own check must answer.
func missing(t *testing.T, p *plugintest.Plugin, name string) {
	t.Helper()
	_, err := p.Module.Run(t.Context(), guest.Invocation{Input: []byte(`{"abi":1,"step":{"type":"` + name + `","fields":{}}}`)})
	if e := abi.As(err); e == nil || e.Code != abi.BadFields || e.Field == "" {
		t.Errorf("without fields: %v", err)
	}
}

// spaced runs a step on an input with white space wherever JSON allows it.
func spaced(t *testing.T, p *plugintest.Plugin, name, output string) {
	t.Helper()
	input := map[string]any{"abi": 1, "step": map[string]any{"type": name, "fields": map[string]any{"url": "https://example.com", "variable": "x", "otherwise": 1}}}
	text, err := json.MarshalIndent(input, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Module.Run(t.Context(), guest.Invocation{Input: text, Call: respond})
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := errors.Join(json.Unmarshal([]byte(output), &want), json.Unmarshal(res.Output, &got)); err != nil {
		t.Fatalf("output %s: %v", res.Output, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func respond(context.Context, string, []byte) (guest.Reply, error) {
	return guest.Reply{Body: []byte("{ \"ok\" : { \"found\" : true , \"status\" : 200 , \"value\" : [ 1 ] } }")}, nil
}
