package host

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/host/plugin/files"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestWatchedFoldersAreKept: no model, plugin or confined command writes to a folder below the
// workspace that a server watches, whether it exists or not: the server executes what it finds.
func TestWatchedFoldersAreKept(t *testing.T) {
	for _, name := range []string{DirName, "ops"} {
		t.Run(name, func(t *testing.T) {
			work := t.TempDir()
			dir := filepath.Join(work, name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			h, err := Open(t.Context(), Options{Dir: dir, Workspace: work, Set: map[string]string{"shell.confine": config.Agents}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			call := func(name string, params map[string]any) (string, error) {
				text, err := json.Marshal(params)
				if err != nil {
					t.Fatal(err)
				}
				out, err := h.CallAs(context.WithoutCancel(t.Context()), &command.Call{Command: name, Params: text, By: command.ByAgent, Workspace: work})
				return string(out), err
			}
			plugins, all := files.New(files.Options{Host: h.hostFiles()}), map[string]files.Folder{"all": {Path: work, Write: true}}
			watched := foldersync.Folders(dir, work)
			if len(watched) < 4 {
				t.Fatalf("watched folders: %q", watched)
			}
			var list []string
			for _, folder := range watched {
				rel, err := filepath.Rel(work, folder)
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.ToSlash(rel) + "/sentinels/x.json"
				list = append(list, file)
				if _, err := call("code/write", map[string]any{"path": file, "content": "{}"}); abi.CodeOf(err) != abi.Denied {
					t.Errorf("code/write of %s: %v", file, err)
				}
				request, err := json.Marshal(map[string]any{"op": "write", "folder": "all", "path": file, "text": "{}"})
				if err != nil {
					t.Fatal(err)
				}
				if out, err := plugins.Do(t.Context(), files.Call{Plugin: "p", Workspace: work, Folders: all, Request: request}); abi.CodeOf(err) != abi.Denied {
					t.Errorf("plugin's write of %s: %s %v", file, out, err)
				}
			}
			for _, g := range confine.Gaps() {
				if g.Wall == confine.WallNamespaces {
					t.Skip(g)
				}
			}
			for _, file := range list {
				out, err := call("code/shell/execute", map[string]any{"command": "mkdir -p " + filepath.Dir(file) + "; echo '{}' > " + file + "; echo done"})
				if err != nil || !strings.Contains(out, "done") {
					t.Errorf("command for %s: %s %v", file, out, err)
				}
				if _, err := os.Lstat(filepath.Join(work, file)); err == nil {
					t.Errorf("a confined command has written %s", file)
				}
			}
		})
	}
}

// TestGitAndConfinedCommandsExcludeEachOther: a command begins when the last git has left the files that it
// can write, further ones are refused meanwhile, and folders beside them do not count.
func TestGitAndConfinedCommandsExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c confinements
		hold := func(folder string) func() {
			t.Helper()
			release, err := c.holdTree(folder)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		inside, around, beside := hold("/w/a/sub"), hold("/w"), hold("/w/ab")
		begun := make(chan *confinement, 1)
		go func() {
			one, err := c.begin(t.Context(), "/w/a")
			if err != nil {
				t.Error(err)
			}
			begun <- one
		}()
		for _, release := range []func(){inside, around} {
			synctest.Wait()
			if len(begun) > 0 {
				t.Fatal("a command begins while git works in its files")
			}
			for _, folder := range []string{"/", "/w", "/w/a", "/w/a/sub"} {
				if _, err := c.holdTree(folder); abi.CodeOf(err) != abi.Conflict {
					t.Errorf("git in %s before a command that waits: %v", folder, err)
				}
			}
			release()
		}
		one := <-begun
		beside()
		hold("/w/ab")()
		if _, err := c.holdTree("/w"); abi.CodeOf(err) != abi.Conflict {
			t.Errorf("git beside a command: %v", err)
		}
		c.end(one)
		release := hold("/w")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.begin(ctx, "/w"); err == nil {
			t.Error("a command begins that was cancelled while it waited")
		}
		hold("/w")()
		release()
	})
}
