//go:build unix

package files_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/files"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const canary = "canary-outside"

func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(canary), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// everything is each operation at a path, in a folder.
func everything(word, path string) []params {
	return []params{
		{"folder": word, "op": "read", "path": path}, {"folder": word, "op": "write", "path": path, "text": "changed"}, {"folder": word, "op": "remove", "path": path},
		{"folder": word, "op": "list", "path": path}, {"folder": word, "op": "stat", "path": path},
	}
}

func TestLinksLeadNowhere(t *testing.T) {
	b := newBench(t)
	out := outside(t)
	data := filepath.Join(b.workspace, "data")
	rel, err := filepath.Rel(data, out)
	if err != nil {
		t.Fatal(err)
	}
	b.put("data/in/f", "inside")
	b.put("plain", "of the workspace")
	link(t, out, filepath.Join(data, "abs"))
	link(t, rel, filepath.Join(data, "rel"))
	link(t, filepath.Join(out, "f"), filepath.Join(data, "file"))
	link(t, filepath.Join(out, "new"), filepath.Join(data, "dangling"))
	link(t, "../plain", filepath.Join(data, "up"))
	link(t, "..", filepath.Join(data, "dir-up"))
	link(t, "loop", filepath.Join(data, "loop"))
	link(t, "in/f", filepath.Join(data, "leaf"))
	link(t, "/proc/self/root"+out, filepath.Join(data, "proc"))
	link(t, "in", filepath.Join(data, "good"))
	for _, name := range []string{"abs/f", "rel/f", "file", "dangling", "up", "dir-up/plain", "dir-up", "loop", "loop/f", "leaf", "proc/f", "abs", "abs/new", "good/../../plain"} {
		for _, p := range everything("data", name) {
			if got, err := b.try(p); abi.CodeOf(err) != abi.Denied {
				t.Errorf("%v: %v, %v, want it denied", p, got, err)
			}
		}
	}
	// A link on the way that stays inside is followed.
	if got := b.do(params{"folder": "data", "op": "read", "path": "good/f"}); got["text"] != "inside" {
		t.Errorf("through a link inside: %v", got)
	}
	b.do(params{"folder": "data", "op": "write", "path": "good/g", "text": "new"})
	got := b.do(params{"folder": "data", "op": "list"})
	if entries := got["entries"].([]any); len(entries) != 1 || entries[0].(map[string]any)["name"] != "in" {
		t.Errorf("listed: %v", got)
	}
	// The folder that was granted may itself be a link of a hostile workspace.
	link(t, out, filepath.Join(b.workspace, "sly"))
	link(t, "data", filepath.Join(b.workspace, "fine"))
	b.call.Folders["sly"], b.call.Folders["fine"] = files.Folder{Path: "sly", Write: true}, files.Folder{Path: "fine", Write: true}
	for _, p := range everything("sly", "f") {
		b.deny(p, abi.Denied, "plugins may not use this folder")
	}
	b.do(params{"folder": "fine", "op": "read", "path": "in/f"})
	untouched(t, out)
	if text, err := os.ReadFile(filepath.Join(b.workspace, "plain")); err != nil || string(text) != "of the workspace" {
		t.Errorf("%q, %v", text, err)
	}
}

func untouched(t *testing.T, out string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "f"))
	entries, _ := os.ReadDir(out)
	if err != nil || string(text) != canary || len(entries) != 1 {
		t.Errorf("outside is now %q, %v, %v", text, err, entries)
	}
}

func TestOddFiles(t *testing.T) {
	b := newBench(t)
	data := filepath.Join(b.workspace, "data")
	b.put("data/one", "x")
	if err := syscall.Mkfifo(filepath.Join(data, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(data, "one"), filepath.Join(data, "two")); err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"read", "write", "remove", "stat"} {
		p := params{"folder": "data", "op": op, "path": "pipe"}
		if op == "write" {
			p["text"] = "x"
		}
		b.deny(p, abi.Denied, "not a regular file")
	}
	b.deny(params{"folder": "data", "op": "write", "path": "two", "text": "y"}, abi.Denied, "hard link")
	if got := b.do(params{"folder": "data", "op": "list"}); len(got["entries"].([]any)) != 2 {
		t.Errorf("listed: %v", got)
	}
	b.do(params{"folder": "data", "op": "remove", "path": "two"})
	if err := os.Chmod(filepath.Join(data, "one"), 0o750); err != nil {
		t.Fatal(err)
	}
	b.do(params{"folder": "data", "op": "write", "path": "one", "text": "y"})
	if info, err := os.Stat(filepath.Join(data, "one")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode is now %v, %v", info, err)
	}
	if os.Geteuid() == 0 {
		t.Log("root may read everything: rights are not tested; run as another user")
		return
	}
	if err := os.Chmod(filepath.Join(data, "one"), 0); err != nil {
		t.Fatal(err)
	}
	b.deny(params{"folder": "data", "op": "read", "path": "one"}, abi.Denied, "modes and owner")
}

// TestRacer swaps folders and files with links and back, thousands of times
// while a plugin reads, writes and removes.
func TestRacer(t *testing.T) {
	b := newBench(t)
	out := outside(t)
	data := filepath.Join(b.workspace, "data")
	// The granted folder, a folder in it, and a file in that change places.
	swaps := []struct{ at, target string }{
		{filepath.Join(b.workspace, "flip"), out}, {filepath.Join(data, "dir"), out}, {filepath.Join(data, "real", "f"), filepath.Join(out, "f")},
	}
	b.put("data/real/g", "inside")
	b.call.Folders["flip"] = files.Folder{Path: "flip", Write: true}
	turns := 2000
	if testing.Short() {
		turns = 400
	}
	var stop atomic.Bool
	var flips, reached atomic.Int64
	var group sync.WaitGroup
	for _, s := range swaps {
		group.Go(func() {
			spare := s.at + "-spare"
			for i := 0; !stop.Load(); i++ {
				// A link goes itself, not what it leads to. A write that makes folders may
				// have been faster than the rename, so spare may be left.
				if os.RemoveAll(spare) != nil || os.RemoveAll(s.at) != nil {
					continue
				}
				if i%2 == 0 {
					_ = os.Symlink(s.target, spare)
				} else if strings.HasSuffix(s.target, "f") {
					_ = os.WriteFile(spare, []byte("inside"), 0o644)
				} else {
					_ = os.Mkdir(spare, 0o755)
					_ = os.WriteFile(filepath.Join(spare, "f"), []byte("inside"), 0o644)
				}
				_ = os.Rename(spare, s.at)
				flips.Add(1)
			}
		})
	}
	tries := append(append(everything("flip", "f"), everything("data", "dir/f")...), everything("data", "real/f")...)
	tries = append(tries, params{"folder": "data", "op": "write", "path": "dir/new/deep", "text": "changed"}, params{"folder": "flip", "op": "list"}, params{"folder": "data", "op": "list", "path": "dir"})
	for i := range turns {
		raw, _ := json.Marshal(tries[i%len(tries)])
		call := b.call
		call.Request = raw
		answer, err := b.access.Do(t.Context(), call)
		if strings.Contains(string(answer), canary) {
			t.Fatalf("%s: %s", raw, answer)
		}
		if err == nil {
			reached.Add(1)
		} else if abi.As(err) == nil {
			t.Fatalf("%s: an error without a code: %v", raw, err)
		}
	}
	stop.Store(true)
	group.Wait()
	t.Logf("%d flips during %d calls, %d of which did something", flips.Load(), turns, reached.Load())
	if flips.Load() < int64(turns)/4 || reached.Load() == 0 {
		t.Error("too few flips, or no call that worked: nothing was tested")
	}
	untouched(t, out)
}
