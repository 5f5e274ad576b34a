package filewalk_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
)

// names and parts are chosen so that patterns of parts often match paths of names.
var (
	names = []string{"a", "b", "ab", "abc", "a.log", "b.txt", "foo", "bar", "x y", "#h", "!n", "[x]", "a]", "-", "build", "A", "z9", "{a,b}", `\q`, "**", "a:"}
	parts = []string{
		"a", "b", "ab", "foo", "build", "*", "**", "?", "*.log", "a*", "*b", "[ab]", "[!a]*", "[^a]", "[a-c]*", "f?o", "**b", "a**", "***", "x y", `\#h`, `\!n`, `\[x\]`,
		"[[:alpha:]]*", "[[:digit:]]", "z[0-9]", "[]a]*", "a[]-]", "[x", "{a,b}", "*.*", "b.txt", "[a-]", "A", `\a`, `\\q`, "*[", "[!]a-]*", "[[:nope:]]", "[[:]a]", "[a/b]", "[!/]", "[+-9]",
		`[\]]`, "[z-a]", "[--b]", "[[:upper:]-a]", `a\/b`, "[[:punct:]]*", "",
	}
)

// randomPattern returns one line of a .gitignore file.
func randomPattern(r *rand.Rand) string {
	n := 1
	if r.IntN(2) == 0 {
		n += r.IntN(3)
	}
	var p []string
	for range n {
		p = append(p, parts[r.IntN(len(parts))])
	}
	line := strings.Join(p, "/")
	switch r.IntN(6) {
	case 0:
		line = "/" + line
	case 1:
		line += "/"
	}
	if r.IntN(4) == 0 {
		line = "!" + line
	}
	switch r.IntN(15) {
	case 0:
		line += "  "
	case 1:
		line += `\ `
	case 2:
		line = "# " + line
	case 3:
		line += "\r"
	}
	return line
}

// randomTree makes files with .gitignore files in some folders. It returns the
// paths of files and folders, and the .gitignore files as one text.
func randomTree(t *testing.T, r *rand.Rand, dir string) (paths []string, ignore string) {
	t.Helper()
	tree := map[string]bool{} // true is a folder
	for range 25 {
		for at, depth := ".", r.IntN(4); depth >= 0; depth-- {
			at = path.Join(at, names[r.IntN(len(names))])
			if folder, ok := tree[at]; ok && !folder {
				break
			} else if !ok {
				tree[at] = depth > 0
			}
		}
	}
	tree["."] = true
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		full := filepath.Join(dir, name)
		if !tree[name] {
			if err := os.WriteFile(full, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(full, 0o755); err != nil {
			t.Fatal(err)
		}
		if name != "." && r.IntN(3) > 0 {
			continue
		}
		var lines strings.Builder
		for range 1 + r.IntN(5) {
			lines.WriteString(randomPattern(r) + "\n")
		}
		if err := os.WriteFile(filepath.Join(full, ".gitignore"), []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		ignore += fmt.Sprintf("%s: %q\n", name, lines.String())
	}
	delete(tree, ".")
	return slices.Sorted(maps.Keys(tree)), ignore
}

// TestIgnoresAsGitDoes compares the files that a walk visits in random trees with
// git check-ignore.
func TestIgnoresAsGitDoes(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("git is needed for the comparison: %v", err)
	}
	trees := 300
	if testing.Short() {
		trees = 60
	}
	ignored, all := 0, 0
	for seed := range trees {
		dir := t.TempDir()
		paths, rules := randomTree(t, rand.New(rand.NewPCG(uint64(seed), 7)), dir)
		want := ignoredByGit(t, dir, paths)
		visited := map[string]bool{}
		visit(t, dir, filewalk.Options{}, func(name string, _ fs.DirEntry) error {
			visited[name] = true
			return nil
		})
		for _, name := range paths {
			if visited[name] == want[name] {
				t.Errorf("seed %d: %q: ignored by git: %t, visited: %t; rules:\n%s", seed, name, want[name], visited[name], rules)
			}
			if all++; want[name] {
				ignored++
			}
		}
	}
	t.Logf("git ignores %d of %d paths", ignored, all)
	if ignored < all/10 || ignored > all*9/10 {
		t.Errorf("git ignores %d of %d paths: the trees show little", ignored, all)
	}
}

// ignoredByGit returns which paths git ignores by the .gitignore files of the tree.
func ignoredByGit(t *testing.T, dir string, paths []string) map[string]bool {
	t.Helper()
	run := func(in string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_DIR="+filepath.Join(dir, ".git"), "GIT_WORK_TREE="+dir)
		var problem bytes.Buffer
		cmd.Stderr = &problem
		out, err := cmd.Output()
		if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) { // 1: no path is ignored
			t.Fatalf("git %q: %v: %s", args, err, problem.String())
		}
		return string(out)
	}
	run("", "init", "--quiet")
	out := run("./"+strings.Join(paths, "\x00./")+"\x00", "-c", "core.excludesFile="+os.DevNull, "-c", "core.ignoreCase=false", "check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin")
	fields := strings.Split(out, "\x00") // source, line, pattern and path of each
	ignored := map[string]bool{}
	for i := 0; i+3 < len(fields); i += 4 {
		ignored[strings.TrimPrefix(fields[i+3], "./")] = fields[i+2] != "" && !strings.HasPrefix(fields[i+2], "!")
	}
	if len(ignored) != len(paths) {
		t.Fatalf("git has checked %d of %d paths", len(ignored), len(paths))
	}
	return ignored
}
