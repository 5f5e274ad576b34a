package host_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAcceptancePage: each row of ACCEPTANCE.md names tests that exist, in the file or the
// folder to which it links.
func TestAcceptancePage(t *testing.T) {
	page, err := os.ReadFile("ACCEPTANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	name, link := regexp.MustCompile("`(Test\\w+)`"), regexp.MustCompile(`\]\(([^)]+)\) \|$`)
	rows, tested := 0, false // a table without a column of tests says what to type
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		tested = strings.Contains(line, "| test |") || tested && line != ""
		if !tested || !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.Contains(line, "| test |") {
			continue
		}
		rows++
		names, target := name.FindAllStringSubmatch(line, -1), link.FindStringSubmatch(line)
		if len(names) == 0 || target == nil {
			t.Errorf("no test or no file: %s", line)
			continue
		}
		src := sourceOf(t, target[1])
		for _, m := range names {
			if !bytes.Contains(src, []byte("\nfunc "+m[1]+"(")) {
				t.Errorf("%s has no test %s: %s", target[1], m[1], line)
			}
		}
	}
	if rows < 120 {
		t.Errorf("%d rows", rows)
	}
}

// sourceOf returns the text of a file, or of all tests of a folder.
func sourceOf(t *testing.T, path string) []byte {
	t.Helper()
	files := []string{path}
	if !strings.HasSuffix(path, ".go") {
		var err error
		if files, err = filepath.Glob(filepath.Join(path, "*_test.go")); err != nil {
			t.Fatal(err)
		}
	}
	var all []byte
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Error(err)
		}
		all = append(all, src...)
	}
	return all
}
