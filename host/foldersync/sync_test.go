package foldersync_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/files"
)

func TestMain(m *testing.M) {
	runtime.ServeChild() // plugins are compiled in a child of this program
	goleak.VerifyTestMain(m)
}

// echo is a small guest with one step type, in versions.
func echo(t testing.TB, version int) []byte {
	t.Helper()
	code, err := os.ReadFile("../../runtime/internal/wasm/testdata/wat/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(string(code), `"version":"1"`, fmt.Sprintf(`"version":"%d"`, version), 1))
}

// A fixture is a host's folder, a workspace and an engine of a test.
type fixture struct {
	t         *testing.T
	dir       string
	workspace string
	rt        *runtime.Runtime
	defs      *counted
	r         *foldersync.Syncer
	stop      func()
}

// counted is the engine with a count of what was decoded, and faults.
type counted struct {
	*runtime.Runtime
	decodes atomic.Int64
	full    atomic.Bool // the disk is
}

func (c *counted) DecodeEdit(src []byte, file string) (def *sentinels.Definition, problems, older sentinels.Problems) {
	c.decodes.Add(1)
	return c.Runtime.DecodeEdit(src, file)
}

func (c *counted) SaveWith(ctx context.Context, def *sentinels.Definition, opt runtime.SaveOptions) (runtime.Stored, error) {
	if c.full.Load() {
		return runtime.Stored{}, errors.New("no space left on device")
	}
	return c.Runtime.SaveWith(ctx, def, opt)
}

// newScene makes folders and an engine with the step type echo; begin watches.
func newScene(t *testing.T) *fixture {
	t.Helper()
	workspace := t.TempDir()
	s := &fixture{t: t, dir: filepath.Join(workspace, ".sentinel"), workspace: workspace}
	code := echo(t, 1)
	rt, err := runtime.Open(t.Context(), runtime.Options{Plugins: []plugin.Source{{Name: "own", Trusted: true, Wasm: func() ([]byte, error) { return code, nil }}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	s.rt = rt
	return s
}

// begin sets a Syncer to work, as a host's start does, and waits until all is
// loaded.
func (s *fixture) begin() *fixture {
	s.t.Helper()
	return s.beginWith(foldersync.Options{})
}

func (s *fixture) beginWith(opt foldersync.Options) *fixture {
	s.t.Helper()
	s.defs = &counted{Runtime: s.rt}
	opt.Dir, opt.Workspace = s.dir, s.workspace
	if opt.Marks == "" {
		opt.Marks = filepath.Join(s.workspace, "files.jsonl")
	}
	opt.Definitions = s.defs
	if opt.Plugins == nil {
		opt.Plugins = s.rt
	}
	if opt.Grace == 0 {
		opt.Grace = 150 * time.Millisecond
	}
	opt.Retry = 50 * time.Millisecond
	if opt.Watch.Source == nil {
		opt.Watch.Source, opt.Watch.Poll = noSource, 10*time.Millisecond
	}
	opt.Watch.Debounce = 10 * time.Millisecond
	r, err := foldersync.New(opt)
	if err != nil {
		s.t.Fatal(err)
	}
	s.r = r
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	s.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				s.t.Errorf("Run: %v", err)
			}
		})
	}
	s.t.Cleanup(s.stop)
	select {
	case <-r.Ready():
	case err := <-done:
		done <- err
		s.t.Fatalf("Run: %v", err)
	case <-time.After(2 * time.Minute):
		s.t.Fatal("not ready")
	}
	return s
}

func (s *fixture) path(name string) string {
	if strings.HasPrefix(name, ".continuum/") {
		return filepath.Join(s.workspace, name)
	}
	return filepath.Join(s.dir, name)
}

func (s *fixture) write(name, text string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	s.must(os.WriteFile(s.path(name), []byte(text), 0o644))
}

func (s *fixture) text(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	s.must(err)
	return string(b)
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// definition is a file with an id and something that differs.
func definition(id, about string) string {
	return fmt.Sprintf("// the sentinel %s\n{\"id\":%q,\"name\":%q,\"description\":%q,\"steps\":[{\"type\":\"echo\"}]}\n", id, id, id, about)
}

func (s *fixture) info(name string) foldersync.FileInfo {
	for _, f := range s.r.Files() {
		if f.File == s.path(name) {
			return f
		}
	}
	return foldersync.FileInfo{}
}

// eventually waits for something to be so.
func (s *fixture) eventually(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("never: %s; files %+v", what, s.r.Files())
		}
	}
}

// live waits until a file is a revision of an id.
func (s *fixture) live(name string, id sentinels.ID, revision int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s is revision %d of %s", name, revision, id), func() bool {
		i := s.info(name)
		return i.State == foldersync.Live && i.Sentinel == id && i.Revision == revision && len(i.Problems) == 0
	})
	got, err := s.rt.Definition(id)
	if err != nil || got.Revision != revision || got.Origin != s.path(name) {
		s.t.Errorf("stored %s is revision %d of %q (%v), want %d of %s", id, got.Revision, got.Origin, err, revision, name)
	}
}

func (s *fixture) invalid(name, words string) {
	s.t.Helper()
	s.eventually(name+" has the problem "+words, func() bool {
		i := s.info(name)
		return i.State == foldersync.Invalid && strings.Contains(i.Problems.Error(), words)
	})
}

// liveWith waits until a file is live with a problem that the stored definition had before.
func (s *fixture) liveWith(name, words string) {
	s.t.Helper()
	s.eventually(name+" is live with the problem "+words, func() bool {
		i := s.info(name)
		return i.State == foldersync.Live && strings.Contains(i.Problems.Error(), words)
	})
}

func (s *fixture) deleted(id sentinels.ID) {
	s.t.Helper()
	s.eventually(string(id)+" is deleted", func() bool {
		_, err := s.rt.Definition(id)
		return abi.CodeOf(err) == abi.NotFound
	})
}

func (s *fixture) revision(id sentinels.ID) int {
	got, err := s.rt.Definition(id)
	if err != nil {
		return 0
	}
	return got.Revision
}

// TestLifeOfAFile: dropped, edited, broken, mended, deleted, dropped again.
func TestLifeOfAFile(t *testing.T) {
	s := newScene(t).begin()
	s.write("sentinels/a.json", definition("a", "1"))
	s.live("sentinels/a.json", "a", 1)
	s.write("sentinels/a.json", definition("a", "2"))
	s.live("sentinels/a.json", "a", 2)

	s.write("sentinels/a.json", "{\n  \"id\": \"a\", \"name\": \"a\",\n  \"steps\": [{\"type\": \"ekho\"}]\n}")
	s.invalid("sentinels/a.json", ".sentinel/sentinels/a.json:3:22: steps[0].type")
	s.invalid("sentinels/a.json", "ekho")
	if got := s.revision("a"); got != 2 {
		t.Errorf("a broken file changed the store: revision %d", got)
	}
	if p := s.r.Problems(); len(p) != 1 || p[0].Line != 3 {
		t.Errorf("problems %+v", p)
	}
	s.write("sentinels/a.json", `{"id":"a","name":`) // half-written
	s.invalid("sentinels/a.json", "a.json:1:")
	s.write("sentinels/a.json", definition("a", "2")) // as it was
	s.live("sentinels/a.json", "a", 2)

	s.must(os.Remove(s.path("sentinels/a.json")))
	s.eventually("a.json is missing", func() bool { return s.info("sentinels/a.json").State == foldersync.Missing })
	s.deleted("a")
	s.eventually("a.json is not listed", func() bool { return s.info("sentinels/a.json").File == "" })
	if list, err := s.rt.Revisions("a"); err != nil || !list[0].Deleted || list[0].By != "file" || list[1].Revision != 2 {
		t.Errorf("revisions %+v, %v", list, err)
	}
	s.write("sentinels/a.json", definition("a", "2"))
	s.live("sentinels/a.json", "a", 4) // behind the tombstone
}

// TestRename: a file with another name, or one that is written by renaming and
// by deleting, keeps its definition.
func TestRename(t *testing.T) {
	const grace = 2 * time.Second // a rename ends within it, on a busy machine too
	s := newScene(t).beginWith(foldersync.Options{Grace: grace})
	s.write("sentinels/a.json", definition("a", "1"))
	s.live("sentinels/a.json", "a", 1)
	s.must(os.Rename(s.path("sentinels/a.json"), s.path("sentinels/b.json")))
	s.live("sentinels/b.json", "a", 1)
	s.eventually("the old name is not listed", func() bool { return s.info("sentinels/a.json").File == "" })
	s.live("sentinels/b.json", "a", 1)

	s.must(os.Remove(s.path("sentinels/b.json")))
	time.Sleep(60 * time.Millisecond) // seen to be gone, and back within the grace
	s.write("sentinels/b.json", definition("a", "2"))
	s.live("sentinels/b.json", "a", 2)
	time.Sleep(grace + 200*time.Millisecond)
	s.live("sentinels/b.json", "a", 2)
}

// TestNewIdentity: a file that says another id is another sentinel.
func TestNewIdentity(t *testing.T) {
	// Three renames must end within the grace period, on a busy machine too.
	s := newScene(t).beginWith(foldersync.Options{Grace: 5 * time.Second})
	s.write("sentinels/a.json", definition("a", "1"))
	s.live("sentinels/a.json", "a", 1)
	s.write("sentinels/a.json", definition("b", "1"))
	s.live("sentinels/a.json", "b", 1)
	s.deleted("a")
	// Two files that change places keep both.
	s.write("sentinels/c.json", definition("c", "1"))
	s.live("sentinels/c.json", "c", 1)
	s.must(os.Rename(s.path("sentinels/a.json"), s.path("sentinels/x")))
	s.must(os.Rename(s.path("sentinels/c.json"), s.path("sentinels/a.json")))
	s.must(os.Rename(s.path("sentinels/x"), s.path("sentinels/c.json")))
	s.live("sentinels/a.json", "c", 1)
	s.live("sentinels/c.json", "b", 1)
}

// TestTwoFilesOneID: the file that is live keeps the id, also across a restart, the other
// says whose it is, and comes to it when the first is gone. Hidden files are not read.
func TestTwoFilesOneID(t *testing.T) {
	s := newScene(t).begin()
	s.write("sentinels/b.json", definition("x", "b"))
	s.live("sentinels/b.json", "x", 1)
	s.write(".continuum/sentinels/a.json", definition("x", "project"))
	s.invalid(".continuum/sentinels/a.json", "sentinels/b.json")
	s.write("sentinels/a.json", definition("x", "a"))
	s.invalid("sentinels/a.json", "sentinels/b.json")
	s.live("sentinels/b.json", "x", 1)
	for _, hidden := range []string{"sentinels/.b.json", "sentinels/._b.json", "sentinels/.#b.json"} {
		s.write(hidden, definition("x", "hidden"))
	}
	s.write("sentinels/b.json", definition("x", "edited"))
	s.live("sentinels/b.json", "x", 2)
	s.stop()
	s.begin()
	s.live("sentinels/b.json", "x", 2)
	s.invalid("sentinels/a.json", "sentinels/b.json")
	for _, f := range s.r.Files() {
		if strings.Contains(f.File, "/.b") || strings.Contains(f.File, "/._b") || strings.Contains(f.File, "/.#b") {
			t.Errorf("%+v", f)
		}
	}
	s.must(os.Remove(s.path("sentinels/b.json")))
	s.live("sentinels/a.json", "x", 3)
	s.must(os.Remove(s.path("sentinels/a.json")))
	s.live(".continuum/sentinels/a.json", "x", 4)
	s.write("sentinels/b.json", "{")
	s.invalid("sentinels/b.json", "b.json:1:")
	s.live(".continuum/sentinels/a.json", "x", 4) // what never was a definition has no id
}

// TestUnclaimedID: a definition whose file says something else, while the only
// other file that had its id is broken or gone, is deleted.
func TestUnclaimedID(t *testing.T) {
	for _, c := range []struct {
		name string
		last func(s *fixture)
	}{
		{"broken", func(s *fixture) { s.write("sentinels/b.json", "{") }},
		{"gone", func(s *fixture) { s.must(os.Remove(s.path("sentinels/b.json"))) }},
	} {
		for _, first := range []func(s *fixture){
			func(s *fixture) { s.write("sentinels/a.json", definition("y", "a")) },
			func(s *fixture) { s.must(os.Remove(s.path("sentinels/a.json"))) },
		} {
			t.Run(c.name, func(t *testing.T) {
				s := newScene(t).begin()
				s.write("sentinels/a.json", definition("x", "a"))
				s.live("sentinels/a.json", "x", 1)
				s.write("sentinels/b.json", definition("x", "b"))
				s.invalid("sentinels/b.json", "sentinels/a.json")
				c.last(s)
				first(s)
				s.deleted("x")
			})
		}
	}
}

// TestRecipes: pipelines are sentinels, lists of sources are not.
func TestRecipes(t *testing.T) {
	s := newScene(t)
	s.write("recipes/ask.json", `{"name":"ask","pipeline":[{"type":"echo"}]}`)
	s.write("recipes/list.json", `["git","files"]`)
	s.write("recipes/sources.json", `{"sources":["git"]}`)
	s.begin()
	s.live("recipes/ask.json", "ask", 1)
	for _, name := range []string{"recipes/list.json", "recipes/sources.json"} {
		if i := s.info(name); i.State != foldersync.Context || i.Kind != foldersync.KindRecipe {
			t.Errorf("%s is %+v, want context", name, i)
		}
	}
}

// TestLinksOutOfTheWorkspace are not followed; those of the host's own folder
// are, and are written through.
func TestLinksOutOfTheWorkspace(t *testing.T) {
	s := newScene(t).begin()
	out := filepath.Join(t.TempDir(), "out.json")
	s.must(os.WriteFile(out, []byte(definition("out", "1")), 0o600))
	s.must(os.MkdirAll(s.path(".continuum/sentinels"), 0o755))
	s.must(os.MkdirAll(s.path("sentinels"), 0o755))
	s.must(os.Symlink(out, s.path(".continuum/sentinels/a.json")))
	s.must(os.Symlink(out, s.path("sentinels/a.json")))
	s.live("sentinels/a.json", "out", 1)
	if i := s.info(".continuum/sentinels/a.json"); i.File != "" {
		t.Errorf("a link out of the workspace is listed: %+v", i)
	}
	s.edit("out", "2")
	if info, err := os.Lstat(s.path("sentinels/a.json")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("what the link leads to has the rights %v, %v", info.Mode(), err)
	}
	b, err := os.ReadFile(out)
	s.must(err)
	if !strings.Contains(string(b), `"description":"2"`) {
		t.Errorf("the file says %s", b)
	}
}

// TestFullDisk: what cannot be stored is said, and stored later.
func TestFullDisk(t *testing.T) {
	s := newScene(t).begin()
	s.defs.full.Store(true)
	s.write("sentinels/a.json", definition("a", "1"))
	s.invalid("sentinels/a.json", "no space left")
	s.defs.full.Store(false)
	s.live("sentinels/a.json", "a", 1)
}

// TestMarksCannotBeWritten: a start does not need them. They are written by
// themselves as soon as they can be, and the next start reads nothing twice.
func TestMarksCannotBeWritten(t *testing.T) {
	s := newScene(t)
	away := filepath.Join(s.workspace, "away")
	marks := filepath.Join(away, "files.jsonl") // its folder is not there
	s.write("sentinels/a.json", definition("a", "1"))
	s.beginWith(foldersync.Options{Marks: marks})
	s.live("sentinels/a.json", "a", 1)
	s.edit("a", "2") // writes the file back, and fails for no mark
	s.must(os.Mkdir(away, 0o700))
	s.eventually("the marks are written", func() bool {
		text, err := os.ReadFile(marks)
		return err == nil && strings.Contains(string(text), `"revision":2`)
	})
	s.stop()
	s.beginWith(foldersync.Options{Marks: marks})
	if got := s.defs.decodes.Load(); got != 0 {
		t.Errorf("the next start decoded %d files, want none", got)
	}
}

// fullPlugins is an engine that finds no space for the code of plugins.
type fullPlugins struct {
	*runtime.Runtime
	full atomic.Bool
}

func (p *fullPlugins) PreparePlugin(ctx context.Context, code []byte) (plugin.Prepared, error) {
	if p.full.Load() {
		return nil, &abi.Error{Code: abi.Unavailable, Message: "open compile cache: no space left on device"}
	}
	return p.Runtime.PreparePlugin(ctx, code)
}

// TestPluginWithoutSpace: a plugin that cannot be compiled without disk space is
// shown as refused, and loaded by itself when there is space.
func TestPluginWithoutSpace(t *testing.T) {
	s := newScene(t)
	plugins := &fullPlugins{Runtime: s.rt}
	plugins.full.Store(true)
	s.write("plugins/p.wasm", strings.ReplaceAll(string(echo(t, 2)), "echo", "ecno"))
	s.beginWith(foldersync.Options{Plugins: plugins})
	s.invalid("plugins/p.wasm", "no space left")
	plugins.full.Store(false)
	s.eventually("the plugin is live", func() bool { return s.info("plugins/p.wasm").State == foldersync.Live })
}

// TestChanged: observers hear of each new state of a file once, of its end too.
func TestChanged(t *testing.T) {
	var mu sync.Mutex
	var heard []string
	s := newScene(t).beginWith(foldersync.Options{Changed: func(f foldersync.FileInfo) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, fmt.Sprintf("%s@%d", f.State, f.Revision))
	}})
	s.write("sentinels/a.json", definition("a", "1"))
	s.live("sentinels/a.json", "a", 1)
	s.write("sentinels/a.json", "[")
	s.invalid("sentinels/a.json", "a.json")
	s.must(os.Remove(s.path("sentinels/a.json")))
	s.deleted("a")
	s.eventually("the end is reported", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(heard, " ") == "live@1 invalid@1 missing@1 gone@1"
	})
}

// noSource makes a watcher poll.
func noSource() (files.Source, error) { return nil, errors.ErrUnsupported }

// TestChildren: a path in "$ref" leads to files of the folder of the definition alone, whatever the folder of the host is called.
// A file that is not there yet is one.
func TestChildren(t *testing.T) {
	s := newScene(t)
	s.dir = filepath.Join(s.workspace, "jobs")
	parent := func(id, ref string) string {
		return fmt.Sprintf(`{"id":%q,"name":%q,"variables":{"child":{"$ref":%q}},"steps":[{"type":"echo"}]}`, id, id, ref)
	}
	s.must(os.WriteFile(filepath.Join(s.workspace, "away.json"), []byte(definition("away", "1")), 0o600))
	s.write("sentinels/own.json", parent("own", "./later.json"))
	s.write("recipes/other.json", definition("other", "1"))
	s.write("sentinels/sub/deep.json", definition("deep", "1"))
	for name, ref := range map[string]string{
		"sentinels/a.json": "../../away.json", "sentinels/b.json": "../recipes/other.json", "sentinels/c.json": "./sub/deep.json",
		"recipes/d.json": "../../away.json", ".continuum/sentinels/e.json": "../../away.json",
	} {
		s.write(name, parent(strings.TrimSuffix(filepath.Base(name), ".json"), ref))
	}
	s.begin()
	s.live("sentinels/own.json", "own", 1)
	for _, name := range []string{"sentinels/a.json", "sentinels/b.json", "sentinels/c.json", "recipes/d.json", ".continuum/sentinels/e.json"} {
		s.invalid(name, "is not in the folder of the definition that names it")
		if hint := s.info(name).Problems[0].Hint; !strings.Contains(hint, "move it to "+filepath.Dir(s.path(name))+", and write \"./") {
			t.Errorf("%s: the hint is %q", name, hint)
		}
	}
	if s.revision("away") != 0 || s.revision("deep") != 0 {
		t.Error("a file that is not watched is stored")
	}
	s.write("sentinels/a.json", parent("a", "./own.json"))
	s.live("sentinels/a.json", "a", 1)
}
