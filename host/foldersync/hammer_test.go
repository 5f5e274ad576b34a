package foldersync_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// lossy tells of some of what happens, and of what does not.
type lossy struct {
	hints chan files.Hint
	once  sync.Once
}

func (l *lossy) Watch(string) error       { return nil }
func (l *lossy) Unwatch(string)           {}
func (l *lossy) Hints() <-chan files.Hint { return l.hints }
func (l *lossy) Close() error {
	l.once.Do(func() { close(l.hints) })
	return nil
}

// TestHammer edits 2,000 files and the definitions in the store at random, with
// most notifications lost and a restart in between, and compares files, store
// and what is shown whenever all has come to rest.
func TestHammer(t *testing.T) {
	const count = 2000
	edits := 1500
	if testing.Short() {
		edits = 300
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	s := newScene(t)
	s.must(os.MkdirAll(s.path("sentinels"), 0o755))
	name := func(i int) string { return fmt.Sprintf("sentinels/f%04d.json", i) }
	id := func(i int) sentinels.ID { return sentinels.ID(fmt.Sprintf("s%04d", i)) }
	for i := range count / 2 {
		s.write(name(i), definition(string(id(i)), "0"))
	}
	src := make(chan *lossy, 10)
	opt := foldersync.Options{Grace: 30 * time.Millisecond, Watch: files.Options{Rescan: 150 * time.Millisecond, Source: func() (files.Source, error) {
		l := &lossy{hints: make(chan files.Hint, 10_000)}
		src <- l
		return l, nil
	}}}
	start := time.Now()
	s.beginWith(opt)
	t.Logf("%d files were loaded in %v", count/2, time.Since(start))
	notify := []*lossy{<-src, <-src} // of the host's own folder and of the workspace
	for n := range edits {
		i := rng.IntN(count)
		path := s.path(name(i))
		said := fmt.Sprintf("%d", rng.IntN(5))
		switch rng.IntN(12) {
		case 0:
			_ = os.Remove(path)
		case 1:
			s.write(name(i), "{ broken "+said)
		case 2: // another file's id
			s.write(name(i), definition(string(id(rng.IntN(count))), said))
		case 3: // an editor's way
			s.write(name(i)+"~", definition(string(id(i)), said))
			s.must(os.Rename(path+"~", path))
		case 4, 5: // an edit of the store; stale and conflicting ones are refused
			if _, err := s.rt.Definition(id(i)); err != nil || s.r.Sync(t.Context(), id(i)) != nil {
				continue
			}
			if _, err := s.rt.Definition(id(i)); err == nil {
				if err := s.r.WriteBack(t.Context(), s.saved(id(i), said)); err != nil && abi.CodeOf(err) != abi.Conflict {
					t.Fatal(err)
				}
			}
		case 6:
			_ = os.Rename(path, s.path(name(rng.IntN(count))))
		default:
			s.write(name(i), definition(string(id(i)), said))
		}
		if rng.IntN(3) == 0 {
			for _, l := range notify {
				l.hints <- files.Hint{Path: path}
			}
		}
		if n == edits/2 {
			s.stop()
			s.beginWith(opt)
			notify = []*lossy{<-src, <-src}
		}
	}
	var why string
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if why = s.disagree(); why == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("never came to rest: %s", why)
		}
	}
	s.stop()
	s.begin() // and a start finds nothing to do
	if why = s.disagree(); why != "" {
		t.Errorf("after another start: %s", why)
	}
}

// disagree says where files and store are not what the rules say.
func (s *fixture) disagree() string {
	entries, err := os.ReadDir(s.path("sentinels"))
	s.must(err)
	claims := map[sentinels.ID]map[string]string{} // hashes by file; the one that is live keeps the id
	broken := map[string]bool{}
	for _, e := range entries {
		path := filepath.Join(s.path("sentinels"), e.Name())
		src, err := os.ReadFile(path)
		s.must(err)
		def, problems := s.rt.Decode(src, path)
		if len(problems) > 0 {
			broken[path] = true
			continue
		}
		if claims[def.ID] == nil {
			claims[def.ID] = map[string]string{}
		}
		claims[def.ID][path] = def.Hash()
	}
	stored, err := s.rt.Definitions()
	s.must(err)
	have := map[sentinels.ID]bool{}
	for _, d := range stored {
		have[d.ID] = true
		switch {
		case broken[d.Origin]: // its last good version, and an id that no other file gets
		case claims[d.ID] == nil:
			return fmt.Sprintf("%s is stored and in no file; it came from %s", d.ID, d.Origin)
		case claims[d.ID][d.Origin] != d.Hash:
			return fmt.Sprintf("%s is stored from %s with hash %.8s, the files say %v", d.ID, d.Origin, d.Hash, claims[d.ID])
		}
	}
	for id, files := range claims {
		if !have[id] {
			if slices.ContainsFunc(s.r.Files(), func(f foldersync.FileInfo) bool { return f.Sentinel == id && broken[f.File] }) {
				continue // a broken file has the id still
			}
			return fmt.Sprintf("%s of %v is not stored", id, files)
		}
	}
	for _, f := range s.r.Files() {
		want := foldersync.Live
		switch d, err := s.rt.Definition(f.Sentinel); {
		case broken[f.File]:
			want = foldersync.Invalid
		case f.Sentinel == "" || err != nil || d.Origin != f.File:
			want = foldersync.Invalid // another file has its id
		case d.Revision != f.Revision:
			return fmt.Sprintf("%s is shown as revision %d, the store has %d", f.File, f.Revision, d.Revision)
		}
		if f.State != want || want == foldersync.Invalid && len(f.Problems) == 0 {
			return fmt.Sprintf("%s is shown as %s with %v, want %s", f.File, f.State, f.Problems, want)
		}
	}
	if len(s.r.Files()) != len(entries) {
		return fmt.Sprintf("%d files are shown, there are %d", len(s.r.Files()), len(entries))
	}
	return ""
}
