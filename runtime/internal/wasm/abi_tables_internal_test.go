package wasm

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/manifest"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/memory"
	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestWASITable compares clause A1.8 with the WASI functions that a guest may
// import.
func TestWASITable(t *testing.T) {
	offered, err := wasiSignatures(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(offered, abidoc.Map(t, "A1.8")); diff != "" {
		t.Errorf("sdk/ABI.md A1.8 (-code +table):\n%s", diff)
	}
}

// TestLimitTables compares the limits of this package with clauses A8.1, A8.2 and
// A8.4. Memory, output and messages of a step have the limits of package step.
func TestLimitTables(t *testing.T) {
	l := Invocation{}.withDefaults().Limits
	abidoc.Want(t, "A8.1", map[string]string{
		"text on stdout and stderr of one call": abidoc.Bytes(l.LogBytes),
		"manifest":                              abidoc.Bytes(manifest.MaxSize),
		"run input":                             abidoc.Bytes(maxInput),
		"call memory (A1.7)":                    fmt.Sprintf("%s more than linear memory; each block counts %d bytes more than its size rounded up to 8", abidoc.Bytes(callMemorySpare), memory.BlockCost),
		"error text of error_set":               abidoc.Bytes(maxGuestError),
		"text kept of standard error":           abidoc.Bytes(maxTail),
		"describe: time, A8.8":                  seconds(describeTime),
		"validate: time the guest computes, and time it sleeps (A7.1)": seconds(auxTimeout),
	})
	opt, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opt.Close()
	abidoc.Want(t, "A8.2", map[string]string{ // package binary compares the other rows
		"memories":  fmt.Sprintf("1, of %s at its start", abidoc.Bytes(opt.maxMemory)),
		"compiling": fmt.Sprintf("%s of processor, %d minutes, %s of memory, in a child process", seconds(opt.compileTime), 4*opt.compileTime/time.Minute, abidoc.Bytes(opt.compileMemory)),
	})
	abidoc.Want(t, "A8.4", map[string]string{
		"compiling all of them": fmt.Sprintf("%s of processor, %s of memory, in a child process", seconds(schemaTime), abidoc.Bytes(schemaMemory)),
	})
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", d/time.Second) }
