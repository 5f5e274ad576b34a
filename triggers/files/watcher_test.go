package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/sentinel-runtime/sentinel/triggers/files"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is a watched folder with one subscription.
type fixture struct {
	t   *testing.T
	dir string
	w   *files.Watcher
	sub *files.Subscription
}

// watch starts a watcher, which ends with the test.
func watch(t *testing.T, opt files.Options, q files.Query) *fixture {
	t.Helper()
	if opt.Root == "" {
		opt.Root = t.TempDir()
	}
	if opt.Debounce == 0 {
		opt.Debounce = 20 * time.Millisecond
	}
	s := &fixture{t: t, dir: opt.Root, w: files.NewWatcher(opt)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	sub, err := s.w.Subscribe(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	s.sub = sub
	return s
}

func (s *fixture) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *fixture) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// next returns the next batch as "op path" lines.
func (s *fixture) next() []string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	b, err := s.sub.Next(ctx)
	if err != nil {
		s.t.Fatalf("Next: %v", err)
	}
	var out []string
	for _, c := range b.Changes {
		out = append(out, fmt.Sprintf("%s %s", c.Op, c.Path))
	}
	return out
}

func (s *fixture) want(lines ...string) {
	s.t.Helper()
	if diff := cmp.Diff(lines, s.next()); diff != "" {
		s.t.Errorf("batch (-want +got):\n%s", diff)
	}
}

// wantTogether checks changes that were made at one moment, but that the watcher finds one after the
// other: on a slow machine in more than one batch.
func (s *fixture) wantTogether(lines ...string) {
	s.t.Helper()
	var got []string
	for len(got) < len(lines) {
		got = append(got, s.next()...)
	}
	slices.Sort(got)
	if diff := cmp.Diff(lines, got); diff != "" {
		s.t.Errorf("batches (-want +got):\n%s", diff)
	}
}

// wantNone checks that nothing is reported: it makes a later change, which must be
// reported alone.
func (s *fixture) wantNone() {
	s.t.Helper()
	time.Sleep(60 * time.Millisecond) // three times the debounce
	s.write("zz-probe.json", "x"+time.Now().String())
	if got := s.next(); len(got) != 1 || got[0][len(got[0])-len("zz-probe.json"):] != "zz-probe.json" {
		s.t.Errorf("reported %q, want only the probe", got)
	}
}

func all() files.Query { return files.Query{Patterns: []string{"**/*.json"}} }

// TestWriteMethods covers the ways in which programs write files, with the
// notifications of the system.
func TestWriteMethods(t *testing.T) {
	s := watch(t, files.Options{}, all())
	s.write("a.json", "1")
	s.want("created a.json")
	s.write("a.json", "2") // truncate and write
	s.want("modified a.json")

	s.write("a.json.tmp", "3") // rename over
	s.must(os.Rename(s.path("a.json.tmp"), s.path("a.json")))
	s.want("modified a.json")

	s.must(os.Remove(s.path("a.json"))) // delete and create within the debounce
	s.write("a.json", "4")
	s.want("modified a.json")

	s.must(os.Rename(s.path("a.json"), s.path("a.json~"))) // vim with a backup file
	s.write("a.json", "4")
	s.wantNone()

	now := time.Now().Add(time.Hour)
	s.must(os.Chtimes(s.path("a.json"), now, now)) // another time, equal content
	s.must(os.Chmod(s.path("a.json"), 0o600))
	s.wantNone()

	s.must(os.Rename(s.path("a.json"), s.path("b.json")))
	s.want("deleted a.json", "created b.json")
	s.must(os.Remove(s.path("b.json")))
	s.want("deleted b.json")
}

// TestHalfWritten checks that a file is reported only once it is complete.
func TestHalfWritten(t *testing.T) {
	const debounce = 400 * time.Millisecond
	for range 10 {
		s := watch(t, files.Options{Debounce: debounce}, all())
		f, err := os.Create(s.path("slow.json"))
		s.must(err)
		last, longest := time.Now(), time.Duration(0)
		for range 60 { // 1.2 s, three times the debounce
			_, err := f.WriteString("x")
			s.must(err)
			longest, last = max(longest, time.Since(last)), time.Now()
			time.Sleep(20 * time.Millisecond)
		}
		s.must(f.Close())
		if max(longest, time.Since(last)) > debounce/2 {
			continue // the machine stood still, and the file looked finished
		}
		s.want("created slow.json")
		s.wantNone()
		return
	}
	t.Skip("the machine stood still during every attempt")
}

// TestSymlinkSwap covers links that are replaced to lead elsewhere.
func TestSymlinkSwap(t *testing.T) {
	dir := t.TempDir()
	other := t.TempDir()
	s := watch(t, files.Options{Root: dir}, files.Query{Patterns: []string{"*.json", "conf/*.json"}})
	s.must(os.WriteFile(filepath.Join(other, "one"), []byte("1"), 0o644))
	s.must(os.WriteFile(filepath.Join(other, "two"), []byte("2"), 0o644))
	swap := func(target, name string) {
		t.Helper()
		s.must(os.Symlink(target, s.path(name+".new")))
		s.must(os.Rename(s.path(name+".new"), s.path(name)))
	}
	swap(filepath.Join(other, "one"), "a.json")
	s.want("created a.json")
	swap(filepath.Join(other, "two"), "a.json")
	s.want("modified a.json")

	// A link to a folder, as Kubernetes publishes configuration.
	s.must(os.MkdirAll(s.path("v1"), 0o755))
	s.must(os.MkdirAll(s.path("v2"), 0o755))
	s.write("v1/x.json", "1")
	s.write("v1/gone.json", "1")
	s.write("v2/x.json", "2")
	swap("v1", "conf")
	s.wantTogether("created conf/gone.json", "created conf/x.json")
	swap("v2", "conf")
	s.wantTogether("deleted conf/gone.json", "modified conf/x.json")
	s.write("v2/y.json", "new")
	s.want("created conf/y.json")

	// The same, one level deeper: ..data -> v1, b.json -> ..data/x.json.
	swap("v1", "..data")
	s.must(os.Symlink("..data/x.json", s.path("b.json")))
	s.want("created b.json")
	swap("v2", "..data")
	s.want("modified b.json")
}

// TestFolders covers folders that are created, deleted, moved away and back.
func TestFolders(t *testing.T) {
	s := watch(t, files.Options{}, all())
	s.write("deep/er/a.json", "1")
	s.want("created deep/er/a.json")
	s.must(os.RemoveAll(s.path("deep")))
	s.want("deleted deep/er/a.json")
	s.write("deep/er/a.json", "2")
	s.want("created deep/er/a.json")
	s.write("deep/er/a.json", "3")
	s.want("modified deep/er/a.json")

	out := filepath.Join(t.TempDir(), "away")
	s.must(os.Rename(s.path("deep"), out))
	s.want("deleted deep/er/a.json")
	s.must(os.WriteFile(filepath.Join(out, "er", "a.json"), []byte("outside of the root"), 0o644))
	s.wantNone()
	s.must(os.Rename(out, s.path("deep")))
	s.want("created deep/er/a.json")
	s.write("deep/er/b.json", "1") // it is watched again
	s.want("created deep/er/b.json")
}

// TestFolderByName names a folder without wildcards, which exists only later: its files are watched at any depth.
func TestFolderByName(t *testing.T) {
	s := watch(t, files.Options{}, files.Query{Patterns: []string{"in", "./a/out", "note.txt", "zz-probe.json"}})
	s.write("in/a.txt", "1")
	s.want("created in/a.txt")
	s.write("a/out/b/c.txt", "1")
	s.want("created a/out/b/c.txt")
	s.write("note.txt", "1")
	s.want("created note.txt")
	s.write("a/in/x.txt", "1") // another folder of that name
	s.wantNone()
}

// TestMissingRoot covers a root that does not exist yet, with its parent, and that
// is deleted and moved.
func TestMissingRoot(t *testing.T) {
	root := filepath.Join(t.TempDir(), "not", "yet")
	s := watch(t, files.Options{Root: root}, files.Query{Patterns: []string{"in/*.json"}})
	s.write("in/a.json", "1")
	s.want("created in/a.json")
	s.must(os.RemoveAll(filepath.Dir(root)))
	s.want("deleted in/a.json")
	s.write("in/a.json", "2")
	s.want("created in/a.json")
	s.must(os.Rename(root, root+".old"))
	s.want("deleted in/a.json")
	s.must(os.Rename(root+".old", root))
	s.want("created in/a.json")
	s.write("in/a.json", "3")
	s.want("modified in/a.json")
}

// TestConfined checks that a confined watcher ignores links that lead out.
func TestConfined(t *testing.T) {
	out := t.TempDir()
	s := watch(t, files.Options{Confined: true}, files.Query{Patterns: []string{"*.json", "linked/*.json"}})
	s.must(os.WriteFile(filepath.Join(out, "secret.json"), []byte("1"), 0o644))
	s.must(os.Symlink(filepath.Join(out, "secret.json"), s.path("a.json")))
	s.must(os.Symlink(out, s.path("linked")))
	s.wantNone()
	if _, err := s.w.ReadFile("a.json", 100); err == nil {
		t.Error("ReadFile followed a link that leads out")
	}
	s.write("real.json", "inside")
	s.want("created real.json")
	s.must(os.Symlink("real.json", s.path("b.json")))
	s.want("created b.json")
	if b, err := s.w.ReadFile("b.json", 100); err != nil || string(b) != "inside" {
		t.Errorf("ReadFile = %q, %v", b, err)
	}
	if _, err := s.w.ReadFile("b.json", 3); err == nil {
		t.Error("ReadFile returned more than its limit")
	}
}

// TestIgnored covers folders of tools, temporary files and ignored patterns.
func TestIgnored(t *testing.T) {
	s := watch(t, files.Options{}, files.Query{Patterns: []string{"**/*.json"}, Ignore: []string{"dist", "**/*.gen.json"}})
	for _, name := range []string{".git/a.json", "x/node_modules/m/a.json", ".sentinel/state/a.json", "dist/deep/a.json", "y/a.gen.json", ".#a.json", "a.json~"} {
		s.write(name, "1")
	}
	s.wantNone()
	s.write(".sentinel/sentinels/a.json", "1")
	s.want("created .sentinel/sentinels/a.json")
}

// TestPolling checks that changes are found without notifications.
func TestPolling(t *testing.T) {
	s := watch(t, files.Options{Source: noSource, Poll: 30 * time.Millisecond}, all())
	s.write("deep/a.json", "1")
	s.want("created deep/a.json")
	s.write("deep/a.json", "2")
	s.want("modified deep/a.json")
	s.must(os.RemoveAll(s.path("deep")))
	s.want("deleted deep/a.json")
}

// TestSubscriptions checks that each subscription gets changes of its own files
// from its baseline on, which Files returns.
func TestSubscriptions(t *testing.T) {
	s := watch(t, files.Options{}, all())
	s.write("a.json", "1")
	s.write("a.txt", "1")
	s.want("created a.json")
	late, err := s.w.Subscribe(t.Context(), files.Query{Patterns: []string{"*.txt", "*.json"}})
	s.must(err)
	if list, _ := late.Files(); len(list) != 2 || list[0].Path != "a.json" || list[1].Path != "a.txt" || list[0].Digest == "" {
		t.Errorf("baseline %+v", list)
	}
	s.write("b.txt", "1")
	b, err := late.Next(t.Context())
	if err != nil || len(b.Changes) != 1 || b.Changes[0].Path != "b.txt" || b.Changes[0].Digest == "" {
		t.Errorf("late.Next = %+v, %v", b, err)
	}
	if list, fingerprint := late.Files(); len(list) != 3 || fingerprint != b.Fingerprint || fingerprint.Files != 3 {
		t.Errorf("Files = %+v, %+v; fingerprint of the batch %+v", list, fingerprint, b.Fingerprint)
	}
	late.Close()
	late.Close()
	if _, err := late.Next(t.Context()); err == nil {
		t.Error("Next of a closed subscription returned nil")
	}
	s.write("c.json", "1")
	s.want("created c.json")
}

// TestTooMany checks that a query that matches more than MaxFiles files is refused
// and does not affect other subscriptions.
func TestTooMany(t *testing.T) {
	s := watch(t, files.Options{MaxFiles: 3}, files.Query{Patterns: []string{"*.json"}})
	for i := range 4 {
		s.write(fmt.Sprintf("%d.txt", i), "1")
	}
	if _, err := s.w.Subscribe(t.Context(), files.Query{Patterns: []string{"*.txt"}}); err == nil {
		t.Error("a query with four files was accepted, want at most three")
	}
	s.write("a.json", "1")
	s.want("created a.json")
	for i := range 4 {
		s.write(fmt.Sprintf("%d.json", i), "1")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if _, err := s.sub.Next(ctx); err != nil {
			if ctx.Err() != nil {
				t.Error("a subscription that exceeded MaxFiles was not ended")
			}
			return
		}
	}
}

// TestMerge checks that several changes of a file are one change, or none.
func TestMerge(t *testing.T) {
	s := watch(t, files.Options{}, files.Query{Patterns: []string{"*.json"}, Settle: 400 * time.Millisecond})
	s.write("a.json", "1")
	time.Sleep(100 * time.Millisecond)
	s.write("a.json", "2")
	s.write("b.json", "1")
	time.Sleep(100 * time.Millisecond)
	s.must(os.Remove(s.path("b.json")))
	s.want("created a.json")
}

// noSource is the source of a file system without notifications: the watcher polls.
func noSource() (files.Source, error) { return nil, errors.ErrUnsupported }
