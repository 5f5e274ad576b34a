package command_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A source is commands that a test changes.
type source struct {
	list   []command.Command
	absent map[string]error
}

func (s *source) Commands() []command.Command { return s.list }
func (s *source) Absent(name string) error    { return s.absent[name] }

// dynamic is a command of a source that answers a text.
func dynamic(name, version, schema, answer string) command.Command {
	return command.NewDynamic(name, "s", json.RawMessage(schema), nil, command.Options{Effect: command.Changes, Private: true, Version: version}, func(context.Context, *command.Call) (json.RawMessage, error) {
		return json.RawMessage(answer), nil
	})
}

// TestSource: what a source offers counts at each call, by version, and never in place of a
// command that was added.
func TestSource(t *testing.T) {
	r, err := command.NewRegistry(dynamic("own/a", "", `{"type":"object"}`, `"own"`))
	if err != nil {
		t.Fatal(err)
	}
	s := &source{absent: map[string]error{"kit/wait": &abi.Error{Code: abi.Denied, Message: "it waits", Hint: "allow it"}}}
	r.Follow(s)
	call := func(name, params string) string {
		out, err := r.Call(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: command.ByUser})
		if err != nil {
			return string(abi.CodeOf(err))
		}
		return string(out)
	}
	expect := func(name, params, want string) {
		t.Helper()
		if got := call(name, params); got != want {
			t.Errorf("%s %s: %s, want %s", name, params, got, want)
		}
	}
	expect("kit/a", `{}`, "not_found")
	expect("kit/wait", `{}`, "denied")
	if e := r.Absent("kit/wait"); e == nil || e.Hint != "allow it" {
		t.Errorf("absent: %+v", e)
	}
	s.list = []command.Command{dynamic("kit/a", "1", `{"type":"object","additionalProperties":false}`, `1`), dynamic("own/a", "1", `{"type":"object"}`, `"taken"`), dynamic("bad name", "1", `{}`, `0`), dynamic("kit/bad", "1", `{"type":7}`, `0`)}
	expect("kit/a", `{}`, "1")
	expect("kit/a", `{"x":1}`, "bad_fields")
	expect("own/a", `{}`, `"own"`)
	expect("kit/bad", `{}`, "not_found")
	var names []string
	for _, c := range r.List() {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"kit/a", "own/a"}) {
		t.Errorf("list %q", names)
	}
	s.list = []command.Command{dynamic("kit/a", "2", `{"type":"object","required":["x"]}`, `2`)}
	expect("kit/a", `{}`, "bad_fields")
	expect("kit/a", `{"x":1}`, "2")
	s.list = nil
	expect("kit/a", `{"x":1}`, "not_found")
}

// TestVersionChangesWithTheList: the version is another one after each change of what is listed, and no other time.
func TestVersionChangesWithTheList(t *testing.T) {
	r, err := command.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	s := &source{}
	r.Follow(s)
	seen := map[string]string{}
	changed := func(what string) {
		t.Helper()
		v := r.Version()
		if before, ok := seen[v]; ok {
			t.Errorf("%s: the version is that of %s", what, before)
		}
		if seen[v] = what; r.Version() != v {
			t.Errorf("%s: it changes by itself", what)
		}
	}
	changed("none")
	if err := r.Add(dynamic("own/a", "", `{"type":"object"}`, `1`)); err != nil {
		t.Fatal(err)
	}
	changed("own/a")
	s.list = []command.Command{dynamic("kit/a", "1", `{"type":"object"}`, `1`)}
	changed("kit/a 1")
	s.list = []command.Command{dynamic("kit/a", "2", `{"type":"object"}`, `1`)}
	changed("kit/a 2")
	s.list = append(s.list, dynamic("kit/b", "1", `{"type":"object"}`, `1`))
	changed("kit/b")
	r.Remove("own/a")
	changed("without own/a")
}
