package external

import (
	"encoding/json"
	"testing"
)

func TestNamedBy(t *testing.T) {
	plain := CommandInfo{Name: "code/read"}
	nested := CommandInfo{Name: "git/remote/push"}
	private := CommandInfo{Name: "git/remote/push", Private: true}
	byName := CommandInfo{Name: "shell/run", ByName: true}
	for _, c := range []struct {
		info    CommandInfo
		pattern string
		want    bool
	}{
		{plain, "code/read", true}, {plain, "code/*", true}, {plain, "*", true}, {plain, "code", false}, {plain, "/*", false}, {plain, "cod/*", false},
		{nested, "git/*", true}, {nested, "git/remote/*", true},
		{private, "git/remote/push", true}, {private, "git/remote/*", true}, {private, "git/*", false}, {private, "*", false},
		{byName, "shell/run", true}, {byName, "shell/*", false}, {byName, "*", false},
	} {
		if got := c.info.NamedBy([]string{"other", c.pattern}); got != c.want {
			t.Errorf("%+v by %q: %v", c.info, c.pattern, got)
		}
	}
}

func TestMayRepeat(t *testing.T) {
	put := func(params json.RawMessage) bool { return string(params) == "put" }
	for _, c := range []struct {
		info   CommandInfo
		params string
		want   bool
	}{
		{CommandInfo{}, "put", false}, {CommandInfo{ReadOnly: true}, "post", true}, {CommandInfo{Idempotent: true}, "post", true},
		{CommandInfo{Repeatable: put}, "put", true}, {CommandInfo{Repeatable: put}, "post", false},
	} {
		if got := c.info.MayRepeat(json.RawMessage(c.params)); got != c.want {
			t.Errorf("%+v with %s: %v", c.info, c.params, got)
		}
	}
}

func TestOnlyReads(t *testing.T) {
	info := CommandInfo{Reads: map[string][]string{"op": {"list", "show"}}}
	for params, want := range map[string]bool{
		`{"op":"list"}`: true, `{"op":"show","x":1}`: true, `{"op":"add"}`: false, `{}`: false, `{"op":1}`: false, `null`: false, `[]`: false,
	} {
		if got := info.OnlyReads(json.RawMessage(params)); got != want {
			t.Errorf("%s: %v", params, got)
		}
	}
	info = CommandInfo{Reads: map[string][]string{"method": {"", "GET"}}}
	for params, want := range map[string]bool{`{}`: true, `{"method":"GET"}`: true, `{"method":"POST"}`: false, `{"method":1}`: false, `{"method":null}`: false, `[]`: false} {
		if got := info.OnlyReads(json.RawMessage(params)); got != want {
			t.Errorf("without the parameter too: %s: %v", params, got)
		}
	}
	if (CommandInfo{}).OnlyReads(json.RawMessage(`{"op":"list"}`)) {
		t.Error("a command without Reads only reads")
	}
}
