package code_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// newSkills returns a harness whose models may call fs/*.
func newSkills(t *testing.T, files map[string]string) *harness {
	t.Helper()
	b := newHarness(t, code.Options{}, files)
	b.tools = []string{"fs/*"}
	return b
}

// Specification, S004: "Project-relative paths do NOT start with / (e.g., use
// "docs/file.md" not "/docs/file.md")", and "Add smart path auto-fix".
func TestSpecSkillPaths(t *testing.T) {
	b := newSkills(t, map[string]string{"docs/file.md": "text"})
	for _, c := range []struct {
		path string
		fix  bool
		want abi.Code
		to   string
	}{
		{path: "docs/file.md"},
		{path: filepath.Join(b.dir, "docs/file.md")},
		{path: filepath.Join(b.dir, "docs/file.md"), fix: true},
		{path: "/docs/file.md", want: abi.Denied},
		{path: "/docs/file.md", fix: true, to: "docs/file.md"},
		{path: "//docs/file.md", fix: true, to: "docs/file.md"},
		{path: "/docs/none.md", fix: true, want: abi.NotFound},
		// "exempt absolute system prefixes (seed: home, usr; later also etc, var)", and what exists.
		{path: "/home/docs/file.md", fix: true, want: abi.Denied},
		{path: "/usr/docs/file.md", fix: true, want: abi.Denied},
		{path: "/etc/passwd", fix: true, want: abi.Denied},
		{path: "/var/docs/file.md", fix: true, want: abi.Denied},
		{path: "/proc/docs/file.md", fix: true, want: abi.Denied},
	} {
		got, err := b.try(command.ByModel, "fs/read", params{"path": c.path, "path_autofix": c.fix})
		if abi.CodeOf(err) != c.want {
			t.Errorf("%q with fix %v: %v, %v", c.path, c.fix, got, err)
			continue
		}
		fixed, _ := got["autofixed"].(map[string]any)
		if c.to != "" && (fixed["from"] != c.path || fixed["to"] != c.to) || c.to == "" && fixed != nil {
			t.Errorf("%q with fix %v says %v", c.path, c.fix, got["autofixed"])
		}
	}
}

// O2: "an error stays an error": a file that is missing is not a success, and the error is
// not retried as it is (X13: "FILE_NOT_FOUND: logic/needs new approach, no blind repeat").
func TestO2ErrorStaysAnError(t *testing.T) {
	b := newSkills(t, map[string]string{"README.md": "hello"})
	_, err := b.try(command.ByModel, "fs/read", params{"path": "README"})
	if abi.CodeOf(err) != abi.NotFound {
		t.Fatal(err)
	}
	if class := retry.ClassifyError(err); class.Category != retry.Logic || !class.Permanent {
		t.Errorf("%+v", class)
	}
	// A read before a write of the same file does not suppress either.
	if _, err := b.try(command.ByModel, "fs/write", params{"path": "README", "content": "new"}); err != nil || b.get("README") != "new" {
		t.Error(err)
	}
}

// O3: "Path check by string prefix: `out` also allowed `output`; links not resolved".
func TestO3RealContainment(t *testing.T) {
	parent := t.TempDir()
	b := newSkills(t, nil)
	b.dir = filepath.Join(parent, "out")
	b.put("in.txt", "in")
	beside := filepath.Join(parent, "output")
	if err := os.Mkdir(beside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(beside, "f"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(beside, filepath.Join(b.dir, "link")); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{filepath.Join(beside, "f"), "../output/f", "link/f"} {
		for _, fix := range []bool{false, true} {
			if got, err := b.try(command.ByStep, "fs/read", params{"path": path, "path_autofix": fix}); abi.CodeOf(err) != abi.Denied {
				t.Errorf("read %q: %v, %v", path, got, err)
			}
			if got, err := b.try(command.ByStep, "fs/write", params{"path": path, "content": "x", "path_autofix": fix}); abi.CodeOf(err) != abi.Denied {
				t.Errorf("write %q: %v, %v", path, got, err)
			}
		}
	}
	if got, err := b.try(command.ByStep, "fs/list", params{"pattern": "*"}); err != nil || cmp.Diff([]any{"in.txt", "link"}, got["files"]) != "" {
		t.Errorf("%v, %v: links are not followed", got, err)
	}
}

// O4: "Seed's auto-fix touches *every* string starting with a slash, e.g. file contents".
func TestO4OnlyPathsAreFixed(t *testing.T) {
	b := newSkills(t, nil)
	if _, err := b.try(command.ByModel, "fs/write", params{"path": "/docs/route.txt", "content": "/docs/route", "path_autofix": true}); err != nil {
		t.Fatal(err)
	}
	if got := b.get("docs/route.txt"); got != "/docs/route" {
		t.Errorf("the content became %q", got)
	}
}

// Specification: "fs_list (find files when the path is unknown; pattern, cwd, onlyFiles
// true, maxResults 200 up to 2000, no dot files, links not followed)".
func TestSpecList(t *testing.T) {
	all := map[string]string{"README.md": "", "docs/README.txt": "", "docs/dev/a.md": "", ".env": "", ".git/x.md": "", "docs/.hidden.md": ""}
	for i := range 201 {
		all[fmt.Sprintf("many/%03d", i)] = ""
	}
	b := newSkills(t, all)
	for _, c := range []struct {
		p    params
		want []any
	}{
		{params{"pattern": "README*"}, []any{"README.md", "docs/README.txt"}},
		{params{"pattern": "docs/*.txt"}, []any{"docs/README.txt"}},
		{params{"pattern": "**/*.md"}, []any{"README.md", "docs/dev/a.md"}},
		{params{"pattern": "*.md", "cwd": "docs"}, []any{"docs/dev/a.md"}},
		{params{"pattern": "/docs/*.txt", "path_autofix": true}, []any{"docs/README.txt"}},
		{params{"pattern": "*.txt", "cwd": "/docs", "path_autofix": true}, []any{"docs/README.txt"}},
		{params{"cwd": "docs", "onlyFiles": false}, []any{"docs/README.txt", "docs/dev", "docs/dev/a.md"}},
		{params{"pattern": "nothing*"}, []any{}},
	} {
		got, err := b.try(command.ByModel, "fs/list", c.p)
		if err != nil {
			t.Errorf("%v: %v", c.p, err)
		} else if diff := cmp.Diff(c.want, got["files"]); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.p, diff)
		}
	}
	got, err := b.try(command.ByModel, "fs/list", params{})
	if files, _ := got["files"].([]any); err != nil || len(files) != 200 || got["truncated"] != true {
		t.Errorf("%d files, truncated %v, %v", len(files), got["truncated"], err)
	}
	for _, c := range []struct {
		p    params
		want string
	}{
		{params{"pattern": "many/*.md"}, "no file matches many/*.md in " + b.dir},
		{params{"pattern": "docs/old/deep/*.md"}, `no file matches docs/old/deep/*.md: there is no folder "docs/old" in ` + b.dir},
		{params{"pattern": "old/*.md", "cwd": "docs"}, `no file matches old/*.md: there is no folder "old" in ` + filepath.Join(b.dir, "docs")},
		{params{"pattern": "*/old/*.md"}, "no file matches */old/*.md in " + b.dir},
	} {
		if got, err := b.try(command.ByModel, "fs/list", c.p); err != nil || got["note"] != c.want {
			t.Errorf("%v: note %v, want %s; %v", c.p, got["note"], c.want, err)
		}
	}
	// The pages together are the whole list, also if the file at the end of a page is gone.
	whole, err := b.try(command.ByModel, "fs/list", params{"maxResults": 2000})
	if err != nil || whole["truncated"] != false || whole["next"] != nil {
		t.Fatalf("the whole list: truncated %v, next %v, %v", whole["truncated"], whole["next"], err)
	}
	var paged []any
	for page := (params{"maxResults": 7}); ; {
		got, err := b.try(command.ByModel, "fs/list", page)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, got["files"].([]any)...)
		if got["next"] == nil {
			break
		}
		page["after"] = got["next"]
		if len(paged) == 14 {
			if err := os.Remove(filepath.Join(b.dir, got["next"].(string))); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.SortFunc(paged, func(x, y any) int { return strings.Compare(x.(string), y.(string)) })
	if diff := cmp.Diff(whole["files"], any(paged)); diff != "" {
		t.Errorf("pages (-whole +paged):\n%s", diff)
	}
	for _, bad := range []params{{"maxResults": 2001}, {"pattern": "/docs/*"}, {"cwd": "/docs"}, {"cwd": "README.md"}, {"cwd": "none"}} {
		if got, err := b.try(command.ByModel, "fs/list", bad); err == nil {
			t.Errorf("%v: %v", bad, got)
		}
	}
}
