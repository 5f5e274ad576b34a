//go:build unix

package checkpoint_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
)

// smallOptions have limits about the sizes of the files of the property test.
var smallOptions = checkpoint.Options{FileBytes: 2000, IgnoredFileBytes: 500, IgnoredBytes: 4000, IgnoredFiles: 15}

// TestUndoOfRandomTasks executes random tasks on random trees, with changes of the user after
// them and while checkpoints are made, and kills in between, and reverts them. What the user
// changes during a task counts as the task's. SENTINEL_UNDO_STEPS is the number of steps,
// SENTINEL_UNDO_SEED repeats a run, from the round SENTINEL_UNDO_ROUND on.
func TestUndoOfRandomTasks(t *testing.T) {
	steps, most := 1_000_000, 4000
	if testing.Short() {
		steps, most = 800, 60
	}
	if n, err := strconv.Atoi(os.Getenv("SENTINEL_UNDO_STEPS")); err == nil {
		steps = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("SENTINEL_UNDO_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	var m *model
	first, _ := strconv.Atoi(os.Getenv("SENTINEL_UNDO_ROUND"))
	for round := first; steps > 0 && !t.Failed(); round++ {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		if m == nil || rng.IntN(4) == 0 { // else the tree that the last round left
			if m != nil {
				m.end()
			}
			m = newModel(t)
			m.rng = rng
			m.tree()
		}
		m.rng, m.of = rng, fmt.Sprint("r", round)
		n := 1 + rng.IntN(most)
		if steps -= n; !m.round(n) {
			t.Errorf("seed %d, round %d", seed, round)
		}
		if round%20 == 19 {
			t.Logf("%d rounds, %d steps to go", round+1, max(steps, 0))
		}
	}
	m.end()
}

// A model is a workspace with random contents.
type model struct {
	*folder
	rng *rand.Rand
	of  string
	log []string // what was done in this round
	// races are the states of the paths before and after each checkpoint of this round that was
	// made while the user changed files.
	races [][2]map[string]string
}

func newModel(t *testing.T) *model {
	opt := smallOptions
	opt.Dir = t.TempDir()
	return &model{folder: newFolder(t, opt)}
}

// end lets the folder be removed.
func (m *model) end() {
	_ = filepath.WalkDir(m.dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(m.dir)
}

var modelNames = []string{
	"a", "b", "c.txt", "d.log", "e.db", "node_modules", "dir", "sub", "files", "index", ".env", ".gitignore", ".hidden", "two words", "-dash", "ünï", "q\"uote", "back\\slash",
	"new\nline", "tab\tname", "star*", "[x]", "a-b", "a.b", "a b -> c", "bad\xff", "~", "#hash", "!not", strings.Repeat("long", 50),
}

// name returns a path, an existing one half of the time.
func (m *model) name() string {
	at := ""
	for range 1 + m.rng.IntN(3) {
		at = path.Join(at, modelNames[m.rng.IntN(len(modelNames))])
		if m.rng.IntN(2) == 0 {
			if entries, err := os.ReadDir(m.path(path.Dir(at))); err == nil && len(entries) > 0 {
				at = path.Join(path.Dir(at), entries[m.rng.IntN(len(entries))].Name())
			}
		}
	}
	if slices.ContainsFunc(strings.Split(at, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }) {
		return modelNames[m.rng.IntN(len(modelNames))]
	}
	return at
}

// text returns a content with a size about the limits.
func (m *model) text() string {
	sizes := []int{0, 1, 10, 10, 10, 40, 499, 500, 501, 1999, 2000, 2001, 5000}
	return random(m.rng.IntN(1<<20), sizes[m.rng.IntN(len(sizes))])
}

// tree makes the files of before.
func (m *model) tree() {
	if m.rng.IntN(3) > 0 {
		m.git("init", "-q")
	}
	for range 60 {
		m.step(true)
	}
	if m.rng.IntN(2) == 0 {
		m.tryGit(m.name(), "init", "-q")
	}
}

// tryGit runs git in a folder that may be missing, with arguments that may be wrong.
func (m *model) tryGit(dir string, args ...string) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
	cmd.Dir = m.path(dir)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(m.dir))
	_ = cmd.Run()
}

// step is one action of a task or of the user. Many fail, as the name does not exist or does.
func (m *model) step(all bool) {
	name, other := m.name(), m.name()
	full := m.path(name)
	kind := m.rng.IntN(22)
	m.log = append(m.log, fmt.Sprintf("%d %q %q", kind, name, other))
	switch kind {
	case 0, 1, 2, 3, 4, 5:
		_ = os.MkdirAll(filepath.Dir(full), 0o755)
		_ = os.WriteFile(full, []byte(m.text()), 0o644)
	case 6, 7:
		_ = os.Remove(full)
	case 8:
		if m.rng.IntN(3) == 0 {
			_ = os.RemoveAll(full)
		}
	case 9:
		_ = os.Rename(full, m.path(other))
	case 10:
		_ = os.MkdirAll(full, 0o755)
	case 11:
		_ = os.Symlink(other, full)
	case 12, 13: // another content of the same size and time
		if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
			_ = os.WriteFile(full, []byte(random(m.rng.IntN(1<<20), int(info.Size()))), 0o644)
			if kind == 12 {
				_ = os.Chtimes(full, info.ModTime(), info.ModTime())
			}
		}
	case 14:
		if info, err := os.Lstat(full); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			modes := []fs.FileMode{0o600, 0o644, 0o755, 0o400, 0o444}
			if info.IsDir() {
				modes = []fs.FileMode{0o700, 0o755, 0o750, 0o555, 0o755 | fs.ModeSetgid}
			}
			_ = os.Chmod(full, modes[m.rng.IntN(len(modes))])
		}
	case 15:
		if info, err := os.Lstat(full); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			_ = os.Chtimes(full, time.Now(), time.Now())
		}
	case 16:
		_ = os.Link(full, m.path(other))
	case 17: // rules
		rules := ""
		for range m.rng.IntN(5) {
			rules += modelNames[m.rng.IntN(len(modelNames))] + "\n"
		}
		at := path.Join(path.Dir(name), ".gitignore")
		if m.rng.IntN(3) == 0 {
			at = ".git/info/exclude"
		}
		_ = os.WriteFile(m.path(at), []byte(rules), 0o644)
	case 18:
		if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
			if f, err := os.OpenFile(full, os.O_WRONLY|os.O_APPEND, 0); err == nil {
				_, _ = f.WriteString("more\n")
				_ = f.Close()
			}
		}
	case 19:
		if all && m.rng.IntN(20) == 0 {
			calls := [][]string{
				{"init", "-q"}, {"add", "-A"}, {"add", "-f", name}, {"commit", "-qm", "x", "--no-gpg-sign"}, {"rm", "-q", "--cached", "-r", "."},
				{"checkout", "-q", "-b", "b"}, {"stash", "-q"}, {"clean", "-fdq"},
			}
			call := calls[m.rng.IntN(len(calls))]
			dir := "."
			if m.rng.IntN(2) == 0 {
				dir = name
			}
			m.log = append(m.log, fmt.Sprint("git ", dir, call))
			m.tryGit(dir, call...)
		}
	case 20:
		if all && m.rng.IntN(20) == 0 { // a repository that is removed
			_ = os.RemoveAll(m.path(path.Join(path.Dir(name), ".git")))
		}
	case 21:
		if all && m.rng.IntN(10) == 0 {
			cmd := exec.Command("sh", "-c", `mv "$1" "$2"; cp -p "$2" "$1"; echo x >> "$2"`, "sh", "./"+name, "./"+other)
			cmd.Dir = m.dir
			_ = cmd.Run()
		}
	}
}

// kill lets a process begin an operation and kills it, at a state or at any time.
func (m *model) kill(operation string, states ...string) {
	if m.rng.IntN(6) > 0 {
		return
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHECKPOINT_OPERATION="+operation, "CHECKPOINT_DIR="+m.store, "CHECKPOINT_WORKSPACE="+m.dir, "CHECKPOINT_OF="+m.of, "CHECKPOINT_SMALL=1")
	if m.rng.IntN(2) == 0 {
		cmd.Env = append(cmd.Env, "CHECKPOINT_STATE="+states[m.rng.IntN(len(states))], fmt.Sprint("CHECKPOINT_COUNT=", m.rng.IntN(6)))
		_ = cmd.Run() // it may not get to that state
		return
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	time.Sleep(time.Duration(m.rng.IntN(150)) * time.Millisecond) // any moment will do
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// beside calls make, which makes a checkpoint, and sometimes changes files at the same time.
func (m *model) beside(make func()) {
	if m.rng.IntN(3) > 0 {
		make()
		return
	}
	user := &model{folder: m.folder, rng: rand.New(rand.NewPCG(m.rng.Uint64(), 0))}
	before := m.stamps()
	steps := 1 + m.rng.IntN(30)
	var started sync.WaitGroup
	started.Go(func() {
		for range steps {
			user.step(false)
			time.Sleep(time.Duration(user.rng.IntN(4)) * time.Millisecond) // any moment will do
		}
	})
	make()
	started.Wait()
	m.races = append(m.races, [2]map[string]string{before, m.stamps()})
	m.log = append(m.log, "meanwhile:")
	m.log = append(append(m.log, user.log...), "end of meanwhile")
}

// stamps returns what a change of any path changes, also one that is taken back.
func (m *model) stamps() map[string]string {
	all := map[string]string{}
	_ = filepath.WalkDir(m.dir, func(name string, _ fs.DirEntry, err error) error {
		var s unix.Stat_t
		if rel, relErr := filepath.Rel(m.dir, name); relErr == nil && unix.Lstat(name, &s) == nil {
			all[rel] = fmt.Sprint(s.Ino, s.Mode, s.Size, s.Mtim, s.Ctim)
		}
		return nil
	})
	return all
}

// raced reports whether the user may have changed a path while a checkpoint was made: then that
// may have any of its states. A path may also have been there only for a moment.
func (m *model) raced(p string) bool {
	p = strings.TrimSuffix(p, "/")
	for _, race := range m.races {
		for at := p; ; at = path.Dir(at) {
			before, there := race[0][at]
			if before != race[1][at] {
				return true
			}
			if there || at == "." {
				break
			}
		}
	}
	return false
}

// undoScope returns the scope of the newest restore of this round.
func (m *model) undoScope() string {
	list, err := m.s.List(m.t.Context(), "", m.dir, "")
	if err != nil {
		m.t.Fatal(err)
	}
	for _, c := range slices.Backward(list) {
		if c.Undoes == m.of {
			return c.Of
		}
	}
	return ""
}

// round is one task and its undo. ok is false if something is not as it should be.
func (m *model) round(steps int) (ok bool) {
	m.log, m.races = nil, nil
	bad := func(format string, args ...any) {
		ok = false
		m.t.Errorf(format, args...)
	}
	ok = true
	m.kill("create", "written", "referenced")
	before := m.state()
	m.beside(func() { m.create(m.of, checkpoint.Begin) })
	for range steps {
		m.step(true)
	}
	changed := m.state()
	m.kill("create", "written", "referenced")
	m.beside(func() { m.create(m.of, checkpoint.End) })
	d, err := m.s.DiffOf(m.t.Context(), "", m.dir, m.of, false)
	if err != nil {
		m.t.Fatal(err)
	}
	named := map[string]bool{}
	for _, c := range d.Files {
		named[c.Path] = true
	}
	for p := range touched(before, changed) {
		if !named[p] && !named[p+"/"] && !strings.HasSuffix(p, "/") && !insideNamed(p, d.Files) && !d.Cut && !m.raced(p) {
			bad("the task changed %q, which is not named: %q to %q", p, before[p], changed[p])
		}
	}
	if m.rng.IntN(2) == 0 {
		for range 1 + m.rng.IntN(6) {
			m.step(false)
		}
	}
	mine := m.state()
	m.kill("restore", "written", "referenced", "kept", "removing", "aside", "removed", "made", "filled", "exchanged", "replaced")
	r := m.restore(m.of, false)
	conflicts := map[string]bool{}
	forced := !r.Success
	if forced {
		if diff := cmp.Diff(mine, m.state()); diff != "" {
			bad("a conflict changed files (-before +after):\n%s", diff)
		}
		for _, c := range r.Conflicts {
			conflicts[c.Path], conflicts[c.Path+"/"] = true, true
		}
		r = m.restore(m.of, true)
	}
	after := m.state()
	if !r.Success {
		bad("force did not restore: %+v", r)
	}
	left := map[string]bool{}
	for _, c := range r.Files {
		if c.Left != "" {
			left[strings.TrimSuffix(c.Path, "/")] = true
		}
	}
	for _, c := range r.Refused {
		expected := []string{"permission denied", "could not be read", "a repository is in its place"}
		if !slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(c.Reason, text) }) {
			bad("refused: %+v", c)
		}
		left[strings.TrimSuffix(c.Path, "/")] = true
	}
	task := touched(before, changed)
	for p := range union(before, mine, after) {
		switch {
		case m.raced(p):
		case task[p] && after[p] == before[p], left[strings.TrimSuffix(p, "/")]:
		case !task[p] && after[p] == mine[p]:
		case strings.HasSuffix(p, "/") && before[p] == "" && m.hasInside(p): // something of the user, or git's, is in it
		case forced && conflicts[p] && (after[p] == "" || after[p] == before[p]):
		case !task[p] && mine[p] == "" && after[p] == before[p] && strings.HasSuffix(p, "/"): // of a file that is restored
		case forced && strings.HasSuffix(p, "/") && before[p] == "" && after[p] == "" && after[strings.TrimSuffix(p, "/")] != "": // an empty folder in the place of a file
		default:
			bad("%q is %q: before %q, after the task %q, after the user %q; forced %v", p, clip(after[p]), clip(before[p]), clip(changed[p]), clip(mine[p]), forced)
		}
	}
	if scope := m.undoScope(); scope != "" {
		back := m.restore(scope, false)
		if !back.Success {
			bad("the undo of the undo: %+v", back)
		}
		if diff := cmp.Diff(mine, m.state()); diff != "" && len(back.Refused) == 0 {
			bad("after the undo of the undo (-want +got):\n%s", diff)
		}
	} else if diff := cmp.Diff(mine, after); diff != "" {
		bad("the undo cannot be undone:\n%s", diff)
	}
	if !ok {
		m.t.Logf("steps:\n%s", strings.Join(m.log[max(0, len(m.log)-200):], "\n"))
	}
	return ok
}

func clip(s string) string { return s[:min(len(s), 60)] }

// touched returns the paths that two states differ in.
func touched(a, b map[string]string) map[string]bool {
	set := map[string]bool{}
	for p := range union(a, b) {
		if a[p] != b[p] {
			set[p] = true
		}
	}
	return set
}

func union(list ...map[string]string) map[string]bool {
	set := map[string]bool{}
	for _, m := range list {
		for p := range maps.Keys(m) {
			set[p] = true
		}
	}
	return set
}

// hasInside reports whether there is something in a folder.
func (m *model) hasInside(dir string) bool {
	entries, err := os.ReadDir(m.path(dir))
	return err == nil && len(entries) > 0
}

func insideNamed(p string, list []checkpoint.Change) bool {
	return slices.ContainsFunc(list, func(c checkpoint.Change) bool { return c.Files > 0 && strings.HasPrefix(p, c.Path) })
}
