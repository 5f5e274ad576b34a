package command_test

import (
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// FuzzCall feeds arbitrary parameters as a model would: no panic, and either
// JSON that the same command accepts again unchanged, or bad_fields.
func FuzzCall(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a"}`, `{"path":1,"limit":"3","names":"[1,2]"}`, `"{\"path\":\"a\"}"`, `{"edits":{"old":"x"}}`, `{"limit":1e999999999}`, `[[[[`, `null`, ``,
		`{"path":"a","env":"{\"a\":{\"b\":1}}"}`, `{"path":"a","filter":{"x":[1,{"y":null}]}}`, `{"path":"a","ratio":"1e400"}`,
	} {
		f.Add([]byte(seed))
	}
	r, err := command.NewRegistry(command.New("code/sample", "Echo.", command.Options{Effect: command.Changes, Aliases: map[string]string{"file": "path"}}, echo))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		call := &command.Call{Command: "code/sample", Params: params, By: command.ByModel}
		out, err := r.Call(t.Context(), call)
		if err != nil {
			if abi.CodeOf(err) != abi.BadFields {
				t.Fatalf("%q: %v", params, err)
			}
			return
		}
		again, err := r.Call(t.Context(), &command.Call{Command: "code/sample", Params: json.RawMessage(out), By: command.ByStep})
		if err != nil || string(again) != string(out) {
			t.Fatalf("%q: %s became %s, %v", params, out, again, err)
		}
	})
}
