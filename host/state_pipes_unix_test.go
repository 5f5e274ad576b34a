//go:build unix

package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
)

// TestPipesInTheState: a pipe in the place of the output of an execution or of a blob, and a damaged
// record of an execution, keep no host from starting and ending. The record is set aside alone.
func TestPipesInTheState(t *testing.T) {
	workspace := t.TempDir()
	state := filepath.Join(workspace, host.DirName, "state")
	begin := func() *host.Host {
		t.Helper()
		type opened struct {
			h   *host.Host
			err error
		}
		done := make(chan opened, 1)
		go func() {
			h, err := host.Open(t.Context(), host.Options{Workspace: workspace, CacheDir: compiled()})
			done <- opened{h, err}
		}()
		select {
		case o := <-done:
			if o.err != nil {
				t.Fatal(o.err)
			}
			return o.h
		case <-time.After(2 * time.Minute):
			t.Fatal("the host does not start")
			return nil
		}
	}
	h := begin()
	must(t, h, "code/shell/execute", map[string]any{"command": "echo x"}, nil)
	// The first step stores the code of its plugin as a blob.
	step := map[string]any{"definition": map[string]any{"name": "s", "steps": []any{map[string]any{"type": "set", "values": map[string]any{"v": 1}}}}}
	must(t, h, "sentinel/run", step, nil)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(state, "shell", "*.out"))
	if err != nil || len(logs) == 0 {
		t.Fatal("no output of the execution", err)
	}
	blobs, err := filepath.Glob(filepath.Join(state, "blobs", "*", "*"))
	if err != nil || len(blobs) == 0 {
		t.Fatal("no blob", err)
	}
	for _, path := range []string{logs[0], blobs[0]} {
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	damaged := map[string]string{"0123456789abcde0": "{", "0123456789abcde1": `{"id": 7}`, "0123456789abcde2": "null", "0123456789abcde3": ""}
	for id, text := range damaged {
		path := filepath.Join(state, "shell", id+".json")
		if text == "" {
			err = syscall.Mkfifo(path, 0o600)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h = begin()
	must(t, h, "code/shell/list", map[string]any{}, nil)
	must(t, h, "code/shell/execute", map[string]any{"command": "echo y"}, nil)
	must(t, h, "sentinel/run", step, nil)
	for id := range damaged {
		if _, err := os.Lstat(filepath.Join(state, "shell", id+".json.damaged")); err != nil {
			t.Error(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
