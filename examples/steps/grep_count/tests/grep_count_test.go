// Package grep_count_test is in a folder of its own because the Go toolchain
// takes no C beside its files.
package grep_count_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/host/plugin/files"
	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) { lesson.Main(m) }

// module is the one that lies here, so that the lesson works without a compiler.
func module(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../grep_count.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCases(t *testing.T) { lesson.Cases(t, "..", module(t)) }

// TestStars: a pattern of stars that nearly fits has as many ways to be tried as
// there are places for them, and takes no longer than another.
func TestStars(t *testing.T) {
	p := lesson.Plugin(t, module(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fields, err := json.Marshal(map[string]any{"text": strings.Repeat("a", 100_000), "patterns": []string{strings.Repeat("*a", 40) + "*b"}, "glob": true})
	if err != nil {
		t.Fatal(err)
	}
	out, err := sdktest.Execute(ctx, p, sdktest.Input{Step: sdktest.Step{Type: "grep_count", Fields: fields}}, sdktest.Answers(nil))
	if err != nil || out.Error != nil || !strings.Contains(string(out.Output), `"count":0`) {
		t.Errorf("%v %v %s", err, out.Error, out.Output)
	}
}

// allow grants what is asked for, and says which folder is meant.
type allow struct{ dir string }

func (a allow) Grant(_ context.Context, p plugin.Info) (plugin.Grant, error) {
	return plugin.Grant{Allow: p.Permissions, Folders: map[string]plugin.Folder{"data": {Path: a.dir}}}, nil
}

// folders gives the plugin the host's own access to folders.
type folders struct{ *files.Access }

func (f folders) Do(ctx context.Context, call runtime.PluginCall) (json.RawMessage, error) {
	granted := map[string]files.Folder{}
	for word, to := range call.Grant.Folders {
		granted[word] = files.Folder{Path: to.Path, Write: to.Write}
	}
	return f.Access.Do(ctx, files.Call{Plugin: call.Plugin, Workspace: call.Workspace, Folders: granted, Request: call.Request})
}

// nothing is commands for sentinels that call none.
type nothing struct{}

func (nothing) Lookup(string) (runtime.CommandInfo, bool) { return runtime.CommandInfo{}, false }
func (nothing) Tools([]string) []runtime.CommandInfo      { return nil }
func (nothing) Call(context.Context, runtime.CommandCall) (json.RawMessage, error) {
	return nil, abi.New(abi.NotFound, "no command")
}

// TestSentinel carries the sentinel of the folder out on real files: one that
// comes in parts, one below, one behind a link out of the folder, which is not
// there for the guest.
func TestSentinel(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// 400 KiB of lines whose characters are of two bytes, so that parts end within.
	write(filepath.Join(dir, "big.log"), strings.Repeat("é: Error\nfine\n", 25_000))
	write(filepath.Join(dir, "below", "small.log"), "a WARNING and errors")
	write(filepath.Join(dir, "other.txt"), "error")
	write(filepath.Join(outside, "secret.log"), "error error error")
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	wasm := module(t)
	rt, err := runtime.Open(t.Context(), runtime.Options{
		Plugins: []plugin.Source{
			{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true},
			{Name: "grep_count.wasm", Wasm: func() ([]byte, error) { return wasm, nil }},
		},
		Grants: allow{dir}, Folders: folders{files.New(files.Options{})}, Commands: nothing{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}()
	text, err := os.ReadFile("../grep_count.json")
	if err != nil {
		t.Fatal(err)
	}
	def, problems := rt.Decode(text, "grep_count.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id, err := rt.Start(t.Context(), def, runtime.StartOptions{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.Wait(t.Context(), id)
	if err != nil || res.Status != sentinels.StatusCompleted {
		t.Fatalf("%v %s: %v", err, res.Status, res.Error)
	}
	var logs struct {
		Text           string
		Files, Skipped int
		Lines          int
		Matches        []struct{ Path, Text string }
	}
	if err := json.Unmarshal(res.Variables["logs"], &logs); err != nil {
		t.Fatal(err)
	}
	if logs.Text != "25000 error\n1 warning" || logs.Files != 2 || logs.Skipped != 0 || logs.Lines != 25_001 || len(logs.Matches) != 5 || logs.Matches[0].Path != "below/small.log" {
		t.Errorf("got %+v", logs)
	}
}
