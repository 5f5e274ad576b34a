package runtime_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestConditionReads quotes the specification: "The trace of a condition shows each
// variable it read and its value; a loop condition whose reads are all undefined warns
// once, in status too."
func TestConditionReads(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	id := start(t, rt, `{"name": "undefined", "steps": [
		{"type": "call", "command": "world/look", "value": 1, "outputTo": "x", "condition": "$x.missing.length !== 3 && $iteration < 9"},
		{"type": "if", "check": "$x.value === 1 || $x.list.includes('y')", "then": []}
	], "loop": {"type": "until", "check": "$typo.done || $x.typo.includes('y')"}, "safety": {"maxIterations": 2}}`, runtime.StartOptions{})
	if res := wait(t, rt, id); res.Status != sentinels.StatusTimedOut {
		t.Fatal(res)
	}
	info := status(t, rt, id)
	want := []string{"loop.check: nothing that it reads has a value: $typo.done, $x.typo"}
	if diff := cmp.Diff(want, info.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	it := trace.Iterations[len(trace.Iterations)-1]
	if diff := cmp.Diff(map[string]string{"$typo.done": "undefined", "$x.typo": "undefined"}, it.Reads); diff != "" {
		t.Errorf("loop condition (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"$x.missing.length": "undefined", "$iteration": "2"}, it.Steps[0].Reads); diff != "" {
		t.Errorf("condition of a step (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"$x.value": "1", "$x.list": "undefined"}, it.Steps[1].Attempts[0].Calls[0].Reads); diff != "" {
		t.Errorf("step of type condition (-want +got):\n%s", diff)
	}
}
