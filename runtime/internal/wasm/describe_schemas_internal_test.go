package wasm

import (
	"fmt"
	"path/filepath"
	stdruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestSchemaTimeout: a child that compiles schemas for too long is killed, and no
// marker is written.
func TestSchemaTimeout(t *testing.T) {
	h := openInternal(t)
	h.child, h.schemaTime = subprocess.Self(), time.Microsecond
	m := &Module{host: h, digest: "0123", manifest: Manifest{Name: "a", Steps: []StepType{{Type: "a", Fields: []byte(`{"type":"object"}`)}}}}
	err := h.checkSchemas(t.Context(), m)
	if abi.CodeOf(err) != abi.Timeout || err.Error() != "compile schemas: timed out after 1µs of processor time or 4µs" {
		t.Errorf("error %v of code %q, want a timeout", err, abi.CodeOf(err))
	}
	if notes, _ := filepath.Glob(filepath.Join(h.tempCache.Root(), "*", "schemas-*")); len(notes) != 0 {
		t.Errorf("markers: %v, want none", notes)
	}
	h.schemaTime = time.Minute
	for range 2 {
		if err := h.checkSchemas(t.Context(), m); err != nil {
			t.Error(err)
		}
		h.child = subprocess.Command{} // the second time no child is needed
	}
}

// TestSchemaRefusalIsRemembered: schemas that exceed the memory limit are rejected
// again without a child, until the limit is higher.
func TestSchemaRefusalIsRemembered(t *testing.T) {
	if stdruntime.GOOS != "linux" {
		t.Skip("the memory of a child is bounded on Linux only")
	}
	h := openInternal(t)
	h.child, h.schemaTime, h.schemaMemory = subprocess.Self(), time.Minute, 1<<20
	var many strings.Builder
	for i := range 450 {
		fmt.Fprintf(&many, `,"p%d":{"type":"string","minLength":%d}`, i, i)
	}
	fields := `{"type":"object","properties":{` + many.String()[1:] + `}}`
	m := &Module{host: h, digest: "0123", manifest: Manifest{Name: "a", Steps: []StepType{
		{Type: "a", Fields: []byte(fields)}, {Type: "b", Fields: []byte(fields)}, {Type: "c", Fields: []byte(fields)}, {Type: "d", Fields: []byte(fields)},
	}}}
	err := h.checkSchemas(t.Context(), m)
	if abi.CodeOf(err) != abi.Memory {
		t.Fatalf("error %v of code %q, want one of memory", err, abi.CodeOf(err))
	}
	h.child = subprocess.Command{}
	if again := h.checkSchemas(t.Context(), m); again == nil || again.Error() != err.Error() {
		t.Errorf("the second time: %v, want %v without a child", again, err)
	}
	h.child, h.schemaMemory = subprocess.Self(), schemaMemory
	if err := h.checkSchemas(t.Context(), m); err != nil {
		t.Errorf("with more memory: %v", err)
	}
}
