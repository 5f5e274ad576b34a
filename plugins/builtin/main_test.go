package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestManifest(t *testing.T) {
	m := sdktest.Manifest(t, plugin())
	var types []string
	infer := map[string]string{} // the first type wins, as in the host
	for _, step := range m.Get("steps").Items() {
		name := step.Get("type").StringOr("")
		types = append(types, name)
		for _, field := range step.Get("infer").Items() {
			if f := field.StringOr(""); infer[f] == "" {
				infer[f] = name
			}
		}
		if step.Get("fields").Get("additionalProperties").String() != "false" {
			t.Errorf("%s accepts unknown fields", name)
		}
	}
	want := []string{"command", "approve", "llm", "watch", "condition", "sentinel", "emit", "loop", "parallel", "shell", "wait", "set", "verify", "plan", "group", "fail", "stop", "http"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"command": "command", "prompt": "llm", "approvers": "approve", "event": "emit", "executionId": "watch",
		"definition": "sentinel", "check": "condition", "steps": "loop", "branches": "parallel",
		"argv": "shell", "cmd": "shell", "durationMs": "wait", "url": "http", "values": "set",
	}, infer); diff != "" {
		t.Errorf("inferred types (-want +got):\n%s", diff)
	}
	if !m.Get("stateless").BoolOr(false) {
		t.Error("not stateless")
	}
}
