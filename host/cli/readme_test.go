package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli"
)

// TestWriteYourOwnStep types the section of that name in README.md line by line,
// in an empty folder, without a network.
func TestWriteYourOwnStep(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no plugin is built")
	}
	for _, tool := range []string{"go", "bash", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the section needs %s: %v", tool, err)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Write your own step\n")
	_, block, found := strings.Cut(section, "\n```console\n")
	block, _, closed := strings.Cut(block, "\n```\n")
	if !ok || !found || !closed {
		t.Fatal("README.md has no such section, or no console in it")
	}
	dir := t.TempDir()
	said := map[string]string{}
	for _, line := range strings.Split(block, "\n") {
		typed, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			t.Fatalf("not a line to type: %q", line)
		}
		cmd := exec.Command("bash", "-ec", typed)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "GOCACHE="+goCache(t), "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", typed, err, out)
		}
		verb := regexp.MustCompile(`^sentinel (plugin )?\w+`).FindString(typed)
		said[verb] = string(out)
	}
	for verb, want := range map[string]string{
		"sentinel plugin build": "shout 0.1.0",
		"sentinel plugin test":  "2 passed, 0 failed",
		"sentinel plugin call":  `"text": "HELLO indeed!"`,
		"sentinel run":          "HELLO indeed!!",
	} {
		if !strings.Contains(said[verb], want) {
			t.Errorf("%s said %q, want %q", verb, said[verb], want)
		}
	}
}

// TestHelpExamples: the lines in the help of verbs name verbs and flags that exist.
func TestHelpExamples(t *testing.T) {
	n, problems := cli.CheckExamples(func(line string) []string {
		line, _, _ = strings.Cut(line, " #")
		var words []string
		for _, m := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(line, -1) {
			words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(m))
		}
		return words
	})
	for _, problem := range problems {
		t.Error(problem)
	}
	if n < 40 {
		t.Errorf("found only %d examples", n)
	}
}

// goCache returns the build cache: a test with its own home folder would compile the
// standard library again.
func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Logf("no Go toolchain: what needs it is skipped: %v", err)
	}
	return strings.TrimSpace(string(out))
}
