package files_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// lossy is a source that the test drives: it drops, repeats and invents hints.
type lossy struct {
	hints chan files.Hint
	done  chan struct{}
	once  sync.Once
}

func newLossy() *lossy { return &lossy{hints: make(chan files.Hint), done: make(chan struct{})} }

func (l *lossy) open() (files.Source, error) { return l, nil }
func (l *lossy) Watch(string) error          { return nil }
func (l *lossy) Unwatch(string)              {}
func (l *lossy) Hints() <-chan files.Hint    { return l.hints }
func (l *lossy) Close() error {
	l.once.Do(func() { close(l.hints) })
	return nil
}

func (l *lossy) tell(path string) { l.hints <- files.Hint{Path: path} }

// A replica follows a subscription and objects to changes that cannot follow
// what it knows.
type replica struct {
	files map[string]string // path to digest
	wrong []string
}

func (r *replica) apply(b files.Batch) {
	for _, c := range b.Changes {
		old, there := r.files[c.Path]
		switch {
		case c.Op == files.Created && there, c.Op != files.Created && !there, c.Op == files.Modified && old == c.Digest:
			r.wrong = append(r.wrong, fmt.Sprintf("%+v after %q", c, old))
		case c.Op == files.Deleted:
			delete(r.files, c.Path)
			continue
		}
		r.files[c.Path] = c.Digest
	}
	if b.Mark.Files < 0 {
		r.wrong = append(r.wrong, fmt.Sprintf("mark %+v", b.Mark))
	}
}

// TestHammer makes random edits of 2,000 files under a source that loses more
// than half of what happens, and compares what a subscriber believes with what is
// there, each time it comes to rest.
func TestHammer(t *testing.T) {
	const count = 2000
	rounds, edits := 6, 400
	if testing.Short() {
		rounds = 2
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	src := newLossy()
	s := watch(t, files.Options{Source: src.open, Debounce: 5 * time.Millisecond, Rescan: 100 * time.Millisecond}, files.Query{Patterns: []string{"**/*.json"}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r := &replica{files: map[string]string{}}
	var mu sync.Mutex
	followed := make(chan struct{})
	follow, stop := context.WithCancel(ctx)
	go func() {
		defer close(followed)
		for {
			b, err := s.sub.Next(follow)
			if err != nil {
				return
			}
			mu.Lock()
			r.apply(b)
			mu.Unlock()
		}
	}()
	model := map[string]string{}
	name := func() string {
		i := rng.IntN(count)
		return fmt.Sprintf("d%02d/f%04d.json", i%20, i)
	}
	edit := func() {
		n := name()
		path := s.path(n)
		content := fmt.Sprintf("%d", rng.IntN(4)) // often what it was, and always of one size
		sum := sha256.Sum256([]byte(content))
		switch rng.IntN(10) {
		case 0, 1: // delete
			_ = os.Remove(path)
			delete(model, n)
		case 2: // a whole folder goes
			if rng.IntN(40) > 0 {
				return
			}
			dir := filepath.Dir(n)
			s.must(os.RemoveAll(s.path(dir)))
			for m := range model {
				if filepath.Dir(m) == dir {
					delete(model, m)
				}
			}
			path = s.path(dir)
		case 3, 4: // rename over
			s.write(n+".tmp", content)
			s.must(os.Rename(path+".tmp", path))
			model[n] = hex.EncodeToString(sum[:])
		case 5: // keep the time that it had
			info, err := os.Stat(path)
			s.write(n, content)
			if err == nil {
				s.must(os.Chtimes(path, info.ModTime(), info.ModTime()))
			}
			model[n] = hex.EncodeToString(sum[:])
		default:
			s.write(n, content)
			model[n] = hex.EncodeToString(sum[:])
		}
		switch rng.IntN(20) {
		case 0:
			src.tell("") // overflow
		case 1:
			src.tell(s.path(name())) // of nothing
		case 2, 3, 4, 5, 6, 7:
			src.tell(path)
		}
	}
	for range count / 2 {
		edit()
	}
	for round := range rounds {
		for range edits {
			edit()
		}
		if round%2 == 0 {
			continue
		}
		for { // the rescan finds the rest
			mu.Lock()
			diff, wrong := cmp.Diff(model, r.files), r.wrong
			mu.Unlock()
			if len(wrong) > 0 {
				t.Fatalf("impossible changes: %q", wrong)
			}
			if diff == "" {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("never came to rest (-there +believed):\n%s", diff)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	list, mark := s.sub.Files()
	if len(list) != len(model) || mark.Files != len(model) {
		t.Errorf("%d files listed, the mark says %d, there are %d", len(list), mark.Files, len(model))
	}
	stop()
	<-followed

	// The mark kept by replacing is the one made from scratch.
	again := watch(t, files.Options{Root: s.dir, Source: files.NoSource}, files.Query{Patterns: []string{"**/*.json"}})
	if _, fresh := again.sub.Files(); fresh != mark {
		t.Errorf("mark %+v, from scratch %+v", mark, fresh)
	}
}

// TestHintStorm: more hints than are remembered end in a scan, not in memory.
func TestHintStorm(t *testing.T) {
	src := newLossy()
	s := watch(t, files.Options{Source: src.open, Rescan: time.Hour, Debounce: time.Second}, files.Query{Patterns: []string{"*.json"}})
	s.write("a.json", "1") // nothing is told of it
	for i := range 30_000 {
		src.tell(s.path(fmt.Sprintf("build/%d.o", i)))
	}
	s.want("created a.json")
}
