package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// otherBlocks are JSON blocks of pages that are neither definitions nor parts of one, with
// what they are. The key is the page and the beginning of the block.
var otherBlocks = map[string]string{
	"triggers/CRON.md {\n  \"id\": \"backup\"": "TestComingFromCron runs it, with another line: the program of the crontab is not here",
	"triggers/CRON.md {\n  \"id\": \"sync\"":   "the same",
	`sdk/README.md [{ "name": "loud"`:          "cases of a step test; `sentinel plugin test` reads such a file in TestReadme",
}

// foreignTypes are step types of examples that are not built here; the fields that they
// have beside nested steps are tested with the example.
var foreignTypes = []string{"retry_until", "license_header"}

var (
	fenced = regexp.MustCompile("(?ms)^ *```jsonc?\n(.*?)^ *```")
	// curled are bodies of requests in examples for a shell.
	curled = regexp.MustCompile(`-d '(\{.*\})'`)
)

// TestPageExamples: "every example in help pages and documents validated and run". A
// definition is valid without a warning and its run completes, with programs and a model
// that are stubs; a step, trigger or configuration is read as what it is.
func TestPageExamples(t *testing.T) {
	newModelServer(t, func(chatRequest) answer { return answer{text: "done"} })
	t.Setenv("HOOK_SECRET", "a secret of the test")
	stubs(t)
	h := open(t, host.Options{})
	seen, whole := map[string]bool{}, 0
	for _, page := range pages(t, "*.md") {
		if strings.Contains(page, "testdata/") || strings.Contains(page, "template") {
			continue // not a page of this repository, or written for another folder
		}
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range slices.Concat(fenced.FindAllStringSubmatchIndex(string(text), -1), curled.FindAllStringSubmatchIndex(string(text), -1)) {
			block := string(text[m[2]:m[3]])
			name := fmt.Sprintf("%s:%d", page, 1+strings.Count(string(text[:m[0]]), "\n"))
			t.Run(name, func(t *testing.T) {
				for key := range otherBlocks {
					of, begin, _ := strings.Cut(key, " ")
					if of == page && strings.HasPrefix(block, begin) {
						seen[key] = true
						if !json.Valid([]byte(block)) {
							t.Error("it is not JSON")
						}
						return
					}
				}
				if kind := checkExample(t, h, block, text[m[0]] != '-'); kind == "definition" {
					whole++
				} else if kind == "" && text[m[0]] != '-' {
					t.Errorf("it is no definition, step, trigger or configuration; list it in otherBlocks with what it is:\n%s", block)
				}
			})
		}
	}
	for key := range otherBlocks {
		if !seen[key] {
			t.Errorf("otherBlocks has %q, which no page has", key)
		}
	}
	if whole < 12 {
		t.Errorf("found only %d definitions", whole)
	}
}

// checkExample checks a block, and runs it if it is a definition and complete is set. It
// returns what the block is, "" for none of what it knows.
func checkExample(t *testing.T, h *host.Host, block string, complete bool) string {
	t.Helper()
	keys, kind := map[string]bool{}, ""
	tree := strictjson.ParseWithComments([]byte(block), strictjson.Limits{})
	if tree.Root == nil || tree.Root.Kind != '{' {
		return ""
	}
	for _, m := range tree.Root.Members {
		keys[m.Name] = true
		if m.Name == "type" {
			kind = m.Value.Text
		}
	}
	trigger := slices.ContainsFunc(h.Runtime().DecodeOptions("").Triggers, func(k sentinels.TriggerKind) bool { return k.Name == kind })
	_, inferred := h.Runtime().Inspect(t.Context(), []byte(`{"name": "n", "steps": [`+block+`]}`), "")
	switch {
	case keys["steps"] && keys["name"]:
		if valid, problems := validated(t, h, block, nil); !valid || len(problems) > 0 {
			t.Fatalf("valid: %v, with %q", valid, problems)
		}
		if complete {
			completes(t, h, block)
		}
		return "definition"
	case trigger && kind != "event": // emit and wait steps have an event too
		if _, problems := h.Runtime().Inspect(t.Context(), []byte(`{"name": "n", "steps": [], "trigger": `+block+`}`), ""); len(problems) > 0 {
			t.Error(problems)
		}
		return "trigger"
	case slices.Contains(foreignTypes, kind):
		if len(inferred) != 1 || inferred[0].Message != fmt.Sprintf("unknown step type %q", kind) {
			t.Error(inferred)
		}
		return "step"
	case kind != "":
		if len(inferred.Errors()) > 0 {
			t.Error(inferred)
		}
		return "step"
	case keys["secrets"] || keys["models"] || keys["limits"] || keys["notify"]:
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(config.Options{File: file, Getenv: func(string) string { return "" }}); err != nil {
			t.Error(err)
		}
		return "configuration"
	}
	return ""
}

// completes runs a definition to its end.
func completes(t *testing.T, h *host.Host, definition string) {
	t.Helper()
	def, problems := h.Runtime().Decode([]byte(definition), "")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	workspace(t, dir)
	event := &sentinels.Event{Name: "build:done", Data: []byte(`{"commit":"c"}`)}
	id, err := h.Runtime().Start(ctx, def, runtime.StartOptions{Workspace: dir, Event: event})
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Runtime().Wait(ctx, id)
	if err != nil || res.Status != sentinels.StatusCompleted {
		t.Errorf("%s with %v %v", res.Status, res.Error, err)
	}
}

// stubs puts programs into PATH that examples call: they fail the first time, and write
// nothing but a mark.
func stubs(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go", "make"} {
		script := "#!/bin/sh\ntest -e ." + name + " && exit 0\ntouch ." + name + "\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// workspace makes a repository with a changed file in it.
func workspace(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("TODO: write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "tester"}, {"config", "user.email", "a@b.c"}, {"add", "."}, {"commit", "-q", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("TODO: write more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
