package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	hostplugin "github.com/sentinel-runtime/sentinel/host/plugin"
	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// engine lists plugins of a test, and counts how often it was asked to look at
// the grants again.
type engine struct {
	list  []plugin.Info
	asked int
}

func (e *engine) Plugins() []plugin.Info { return e.list }

// wide asks for something of every use.
func wide() plugin.Info {
	return plugin.Info{Name: "wide", Source: "wide.wasm", Digest: "abc123", Version: "1", State: plugin.Waiting, Permissions: []plugin.Permission{
		{Use: "command", Names: []string{"look/at", "world/*"}, Reason: "r"}, {Use: "llm", Reason: "r"}, {Use: "http", Names: []string{"a.com", "*.b.com"}, Reason: "r"},
		{Use: "folder", Names: []string{"in", "out:rw"}, Reason: "r"}, {Use: "secret", Names: []string{"TOKEN"}, Reason: "r"},
	}}
}

// world is the commands over one engine and a file of grants of their own.
func world(t *testing.T, list ...plugin.Info) (*command.Registry, *engine, *grant.Store, string) {
	t.Helper()
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	e := &engine{list: list}
	store := grant.New(grant.Options{File: filepath.Join(own, "grants.json"), Key: filepath.Join(dir, "key", "grants.key")})
	r, err := command.NewRegistry(hostplugin.Commands(hostplugin.Options{
		Plugins: e, Grants: store, Keep: []string{own, ""}, Regrant: func(context.Context) error { e.asked++; return nil },
		CheckPermission: func(use abi.Use, name string) error {
			if use == abi.UseHTTP && strings.Contains(name, "--") {
				return abi.New(abi.BadFields, fmt.Sprintf("%q is not a host", name))
			}
			return nil
		},
		Lookup: func(name string) (command.Command, bool) {
			return command.Command{Name: name, Effect: map[bool]command.Effect{true: command.Reads, false: command.Changes}[name == "look/at"]}, name == "look/at" || name == "world/act"
		},
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return r, e, store, own
}

type answer struct {
	Grant      *plugin.Grant
	Pin        bool
	Far, Notes []string
}

func allow(t *testing.T, r *command.Registry, by command.By, params string) (answer, error) {
	t.Helper()
	out, err := r.Call(t.Context(), &command.Call{Command: "plugin/allow", Params: json.RawMessage(params), By: by, Attempt: 1})
	var a answer
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	return a, err
}

// TestAllowParts allows parts of what is asked for, and holds what reaches far to
// the bytes.
func TestAllowParts(t *testing.T) {
	r, e, store, own := world(t, wide())
	for name, c := range map[string]struct {
		params string
		want   plugin.Grant
		pin    bool
		far    int
		refuse string // part of the message
	}{
		"all": {`{"name":"wide"}`, plugin.Grant{Allow: []plugin.Permission{
			{Use: "command", Names: []string{"look/at", "world/*"}}, {Use: "llm"}, {Use: "http", Names: []string{"a.com", "*.b.com"}},
			{Use: "folder", Names: []string{"in", "out:rw"}}, {Use: "secret", Names: []string{"TOKEN"}}},
			Secrets: map[string][]string{"TOKEN": {"a.com", "*.b.com"}}}, true, 2, ""},
		"narrow, by the file's name": {`{"name":"wide.wasm","only":[{"use":"command","names":["look/at"]},{"use":"http","names":["x.b.com"]}],"deny":["secret","folder","llm"]}`,
			plugin.Grant{Allow: []plugin.Permission{{Use: "command", Names: []string{"look/at"}}, {Use: "http", Names: []string{"x.b.com"}}}}, false, 0, ""},
		"narrow and pinned": {`{"name":"wide","only":[{"use":"command","names":["look/at"]}],"deny":["secret","folder","llm","http"],"pin":true}`,
			plugin.Grant{Allow: []plugin.Permission{{Use: "command", Names: []string{"look/at"}}}}, true, 0, ""},
		"far and followed": {`{"name":"wide","only":[{"use":"command","names":["world/act"]}],"deny":["secret","folder","llm","http"],"follow":true}`,
			plugin.Grant{Allow: []plugin.Permission{{Use: "command", Names: []string{"world/act"}}}}, false, 1, ""},
		"folders and bounds": {`{"name":"wide","deny":["command","llm","http","secret"],"folders":{"in":{"path":"data"},"out":{"path":"/srv/x","write":true}},"memoryMb":2,"timeoutMs":9}`,
			plugin.Grant{Allow: []plugin.Permission{{Use: "folder", Names: []string{"in", "out:rw"}}}, Memory: 2 << 20, TimeoutMs: 9,
				Folders: map[string]plugin.Folder{"in": {Path: "data"}, "out": {Path: "/srv/x", Write: true}}}, true, 1, ""},
		"secret of one host": {`{"name":"wide","deny":["command","llm","folder"],"secrets":{"TOKEN":["http://c.b.com"]}}`,
			plugin.Grant{Allow: []plugin.Permission{{Use: "http", Names: []string{"a.com", "*.b.com"}}, {Use: "secret", Names: []string{"TOKEN"}}},
				Secrets: map[string][]string{"TOKEN": {"http://c.b.com"}}}, true, 1, ""},
		"another use":              {params: `{"name":"wide","only":[{"use":"emit","names":["a"]}]}`, refuse: `does not ask for "emit"`},
		"another name":             {params: `{"name":"wide","only":[{"use":"command","names":["world"]}]}`, refuse: `does not ask for command "world"`},
		"a wider pattern":          {params: `{"name":"wide","only":[{"use":"command","names":["*"]}]}`, refuse: `does not ask for command "*"`},
		"a host beside":            {params: `{"name":"wide","only":[{"use":"http","names":["xb.com"]}]}`, refuse: `does not ask for http "xb.com"`},
		"a host that is none":      {params: `{"name":"wide","only":[{"use":"http","names":["x--.b.com"]}]}`, refuse: `"x--.b.com" is not a host`},
		"a secret's host likewise": {params: `{"name":"wide","secrets":{"TOKEN":["x--.b.com"]}}`, refuse: `"x--.b.com" is not a host`},
		"memory above the cap":     {params: `{"name":"wide","memoryMb":1025}`, refuse: "want 1,024"},
		"a secret elsewhere":       {params: `{"name":"wide","secrets":{"TOKEN":["evil.com"]}}`, refuse: `may not send requests to "evil.com"`},
		"a secret without hosts":   {params: `{"name":"wide","deny":["http"]}`, refuse: "could go nowhere"},
		"another secret":           {params: `{"name":"wide","secrets":{"OTHER":["a.com"]}}`, refuse: `does not ask for the secret "OTHER"`},
		"write where it reads":     {params: `{"name":"wide","folders":{"in":{"path":"x","write":true}}}`, refuse: "does not ask to write"},
		"another word":             {params: `{"name":"wide","folders":{"data":{"path":"x"}}}`, refuse: `does not ask for the folder "data"`},
		"the host's own":           {params: `{"name":"wide","folders":{"in":{"path":"` + own + `/sub"}}}`, refuse: "a folder of this program"},
		"private without hosts":    {params: `{"name":"wide","deny":["http","secret"],"private":true}`, refuse: "no host"},
		"reuse":                    {params: `{"name":"wide","reuse":true}`, refuse: "stateless"},
		"two answers":              {params: `{"name":"wide","pin":true,"follow":true}`, refuse: "two answers"},
		"another digest":           {params: `{"name":"wide","digest":"abd"}`, refuse: "no version"},
		"unknown":                  {params: `{"name":"wild"}`, refuse: "no plugin"},
	} {
		asked := e.asked
		got, err := allow(t, r, command.ByUser, c.params)
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) || e.asked != asked {
				t.Errorf("%s: %v, want %q", name, err, c.refuse)
			}
			continue
		}
		if err != nil || got.Pin != c.pin || len(got.Far) != c.far || e.asked != asked+1 {
			t.Errorf("%s: pin %v, far %q, %v", name, got.Pin, got.Far, err)
			continue
		}
		entry, seal, err := store.Entry("wide")
		if diff := cmp.Diff(c.want, entry.Grant); diff != "" || seal != grant.Good || err != nil || entry.Pin != c.pin || entry.Digest != "abc123" {
			t.Errorf("%s: %+v, %v (-want +got):\n%s", name, entry, err, diff)
		}
	}
}

// TestOnlyPeople refuses decisions of steps and models, whatever tools they have.
func TestOnlyPeople(t *testing.T) {
	r, e, store, _ := world(t, wide())
	for _, by := range []command.By{command.ByStep, command.ByModel, ""} {
		for _, name := range []string{"plugin/allow", "plugin/deny"} {
			_, err := r.Call(t.Context(), &command.Call{Command: name, Params: json.RawMessage(`{"name":"wide"}`), By: by, Tools: []string{name}, Attempt: 1})
			if abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s by %q: %v", name, by, err)
			}
		}
	}
	if _, seal, err := store.Entry("wide"); seal != grant.None || err != nil || e.asked > 0 {
		t.Errorf("something was decided: %s, %v, asked %d times", seal, err, e.asked)
	}
}

// TestWhichVersion decides about the newest version, the one that a digest names,
// or none where two files claim a name.
func TestWhichVersion(t *testing.T) {
	p := wide()
	p.State, p.Next = plugin.Live, &plugin.Version{Version: "2", Digest: "def456", Permissions: p.Permissions[:1]}
	twin := wide()
	twin.Name, twin.Source, twin.Digest = "twin", "one.wasm", "111"
	other := twin
	other.Source, other.Digest = "two.wasm", "222"
	r, _, store, _ := world(t, p, twin, other, plugin.Info{Name: "builtin", Trusted: true})
	for params, want := range map[string]string{
		`{"name":"wide"}`:                "def456",
		`{"name":"wide","digest":"abc"}`: "abc123",
		`{"name":"twin","digest":"22"}`:  "222",
		`{"name":"one.wasm"}`:            "111",
	} {
		if _, err := allow(t, r, command.ByUser, params); err != nil {
			t.Errorf("%s: %v", params, err)
			continue
		}
		name := "wide"
		if !strings.Contains(params, "wide") {
			name = "twin"
		}
		if e, _, _ := store.Entry(name); e.Digest != want {
			t.Errorf("%s decided about %s, want %s", params, e.Digest, want)
		}
	}
	for params, code := range map[string]abi.Code{`{"name":"twin"}`: abi.Conflict, `{"name":"builtin"}`: abi.Denied} {
		if _, err := allow(t, r, command.ByUser, params); abi.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", params, err, code)
		}
	}
	// A plugin whose file is away can be denied, one that was never seen cannot.
	deny := func(name string) error {
		_, err := r.Call(t.Context(), &command.Call{Command: "plugin/deny", Params: json.RawMessage(`{"name":"` + name + `"}`), By: command.ByUser, Attempt: 1})
		return err
	}
	if err := store.Set(t.Context(), grant.Entry{Name: "away", Digest: "9"}); err != nil {
		t.Fatal(err)
	}
	if err := deny("away"); err != nil {
		t.Error(err)
	}
	if e, _, _ := store.Entry("away"); !e.Denied {
		t.Errorf("the entry is %+v", e)
	}
	if err := deny("never"); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("one that was never seen: %v", err)
	}
}
