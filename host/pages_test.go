package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)

// pages returns the files of the repository that match a pattern of git.
func pages(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", "..", "ls-files", pattern).Output()
	if err != nil {
		t.Skip("git ls-files:", err)
	}
	return strings.Fields(string(out))
}

// TestLinks: the files that pages link to exist.
func TestLinks(t *testing.T) {
	found := 0
	for _, page := range pages(t, "*.md") {
		if strings.Contains(page, "testdata/") || strings.Contains(page, "template") {
			continue // not a page of this repository, or written for another folder
		}
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], ":") {
				continue // an address
			}
			found++
			if _, err := os.Stat(filepath.Join("..", filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
			}
		}
	}
	if found < 50 {
		t.Errorf("found only %d links", found)
	}
}

// TestDecisionsAreIndexed: ARCHITECTURE.md links to every page of decisions.
func TestDecisionsAreIndexed(t *testing.T) {
	index, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rationales := pages(t, "*RATIONALE.md")
	if len(rationales) == 0 {
		t.Fatal("no page of decisions")
	}
	for _, page := range rationales {
		if !strings.Contains(string(index), "]("+page+")") {
			t.Errorf("ARCHITECTURE.md does not link to %s", page)
		}
	}
}

// TestNamedFilesExist: CONTRIBUTING.md and ARCHITECTURE.md name no file or folder that
// is not there.
func TestNamedFilesExist(t *testing.T) {
	name := regexp.MustCompile("`((?:host|runtime|sentinels|sdk|triggers|plugins|examples)/[\\w./-]+)`")
	for _, page := range []string{"CONTRIBUTING.md", "ARCHITECTURE.md"} {
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		names := name.FindAllStringSubmatch(string(text), -1)
		if len(names) < 20 {
			t.Errorf("%s names only %d files", page, len(names))
		}
		for _, m := range names {
			path := strings.TrimSuffix(m[1], "/")
			if strings.Contains(path, "NAME") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", path)); err != nil {
				t.Errorf("%s names %s, which does not exist", page, path)
			}
		}
	}
}
