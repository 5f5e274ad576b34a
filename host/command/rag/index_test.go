package rag_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/rag"
)

type found struct {
	Results []struct {
		Path, Text string
		Line       int
		Score      float64
	}
	Total     int
	Text      string
	Truncated bool
}

// searchWith searches with an index that is kept in a folder, or not if it is empty.
func searchWith(t *testing.T, indexes, dir, query string) (out found, text string) {
	t.Helper()
	r, err := command.NewRegistry(rag.Commands(rag.Options{IndexDir: indexes})...)
	if err != nil {
		t.Fatal(err)
	}
	params, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := r.Call(t.Context(), &command.Call{Command: "rag/search", Params: params, Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		t.Fatal(err)
	}
	return out, string(answer)
}

// TestSearchAfterSave tests "an incremental code index (SQLite FTS5, pure Go) behind
// rag/build and rag/search, up to date after a save, ignoring what git ignores and
// secrets".
func TestSearchAfterSave(t *testing.T) {
	dir, indexes := write(t, project), t.TempDir()
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("git"); err == nil {
		if out, err := exec.Command("git", "-C", dir, "init", "--quiet").CombinedOutput(); err != nil {
			t.Fatalf("git init: %v\n%s", err, out)
		}
	}
	names := func(query string) []string {
		t.Helper()
		out, kept := searchWith(t, indexes, dir, query)
		// An index with a history gives what a new one gives.
		if _, fresh := searchWith(t, "", dir, query); fresh != kept {
			t.Errorf("%s: %s", query, cmp.Diff(fresh, kept))
		}
		list := []string{}
		for _, r := range out.Results {
			list = append(list, fmt.Sprintf("%s:%d", r.Path, r.Line))
		}
		return list
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	check("before", names("discount"))
	long := strings.Repeat("// nothing\n", 300)
	save := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	save("src/cart.go", long+"func applyDiscount() {}\n")
	if got := names("discount"); len(got) != 1 || !strings.HasPrefix(got[0], "src/cart.go:") || got[0] == "src/cart.go:1" {
		t.Errorf("after a save: %v", got)
	}
	save("src/new.go", "discount discount\n")
	check("a new file, with the word twice", names("discount")[:1], "src/new.go:1")
	for _, name := range []string{".env", "conf/server.pem", "debug.log", "node_modules/m/index.js", "image.png"} {
		text := "discount\n"
		if name == "image.png" {
			text = "\x89PNG\x00discount"
		}
		save(name, text)
	}
	save("conf/notes", "-----BEGIN OPENSSH PRIVATE KEY-----\ndiscount\n")
	if got := names("discount"); len(got) != 2 {
		t.Errorf("ignored files, secrets and binary files: %v", got)
	}
	if err := os.Remove(filepath.Join(dir, "src/new.go")); err != nil {
		t.Fatal(err)
	}
	save("src/cart.go", "package src\n")
	check("deleted and changed", names("discount"))
}

// TestAllFilesAreSearched has more text than a search reads.
func TestAllFilesAreSearched(t *testing.T) {
	files := map[string]string{"z/z/last.txt": "needle\n"}
	for i := range 80 {
		files[fmt.Sprintf("f%02d.txt", i)] = strings.Repeat(fmt.Sprintf("filler%d common text\n", i), 7000)
	}
	out, _ := searchWith(t, t.TempDir(), write(t, files), "needle common")
	if out.Truncated || out.Total != 81 || out.Results[0].Path != "z/z/last.txt" {
		t.Errorf("%d files, truncated %t, first %s", out.Total, out.Truncated, out.Results[0].Path)
	}
}

// TestPolicyOfIndex lets models read a file, and not any more, with one folder of indexes.
func TestPolicyOfIndex(t *testing.T) {
	dir, indexes := write(t, map[string]string{".env.test": "needle\n", "a.txt": "needle\n"}), t.TempDir()
	for _, tt := range []struct {
		readable []string
		want     int
	}{{nil, 1}, {[]string{".env.test"}, 2}, {nil, 1}} {
		r, err := command.NewRegistry(rag.Commands(rag.Options{IndexDir: indexes, Rules: command.FileRules{Readable: tt.readable}})...)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := r.Call(t.Context(), &command.Call{Command: "rag/search", Params: json.RawMessage(`{"query":"needle"}`), Workspace: dir})
		if err != nil {
			t.Fatal(err)
		}
		var out found
		if err := json.Unmarshal(answer, &out); err != nil || out.Total != tt.want || len(out.Results) != tt.want {
			t.Errorf("readable %v: %s, %v", tt.readable, answer, err)
		}
	}
}
