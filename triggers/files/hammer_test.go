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

// lossySource is a source whose hints the test sends: some are missing, repeated
// or wrong.
type lossySource struct {
	hints chan files.Hint
	done  chan struct{}
	once  sync.Once
}

func newLossySource() *lossySource {
	return &lossySource{hints: make(chan files.Hint), done: make(chan struct{})}
}

func (l *lossySource) open() (files.Source, error) { return l, nil }
func (l *lossySource) Watch(string) error          { return nil }
func (l *lossySource) Unwatch(string)              {}
func (l *lossySource) Hints() <-chan files.Hint    { return l.hints }
func (l *lossySource) Close() error {
	l.once.Do(func() { close(l.hints) })
	return nil
}

func (l *lossySource) send(path string) { l.hints <- files.Hint{Path: path} }

// A replica applies the batches of a subscription and records impossible changes.
type replica struct {
	files      map[string]string // path to digest
	impossible []string
}

func (r *replica) apply(b files.Batch) {
	for _, c := range b.Changes {
		old, exists := r.files[c.Path]
		switch {
		case c.Op == files.Created && exists, c.Op != files.Created && !exists, c.Op == files.Modified && old == c.Digest:
			r.impossible = append(r.impossible, fmt.Sprintf("%+v after %q", c, old))
		case c.Op == files.Deleted:
			delete(r.files, c.Path)
			continue
		}
		r.files[c.Path] = c.Digest
	}
	if b.Fingerprint.Files < 0 {
		r.impossible = append(r.impossible, fmt.Sprintf("fingerprint %+v", b.Fingerprint))
	}
}

// TestHammer makes random edits of 2,000 files with a source that loses more than
// half of the hints, and repeatedly compares a subscriber's replica with a model of
// the files.
func TestHammer(t *testing.T) {
	const count = 2000
	rounds, edits := 6, 400
	if testing.Short() {
		rounds = 2
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	src := newLossySource()
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
		content := fmt.Sprintf("%d", rng.IntN(4)) // often unchanged, and always of equal size
		sum := sha256.Sum256([]byte(content))
		switch rng.IntN(10) {
		case 0, 1: // delete
			_ = os.Remove(path)
			delete(model, n)
		case 2: // delete a whole folder
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
		case 5: // keep the modification time
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
			src.send("") // overflow
		case 1:
			src.send(s.path(name())) // an unchanged or missing file
		case 2, 3, 4, 5, 6, 7:
			src.send(path)
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
		for { // the rescan finds the changes without a hint
			mu.Lock()
			diff, impossible := cmp.Diff(model, r.files), r.impossible
			mu.Unlock()
			if len(impossible) > 0 {
				t.Fatalf("impossible changes: %q", impossible)
			}
			if diff == "" {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("the replica never matched (-files +replica):\n%s", diff)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	list, fingerprint := s.sub.Files()
	if len(list) != len(model) || fingerprint.Files != len(model) {
		t.Errorf("%d files listed, %d in the fingerprint, want %d", len(list), fingerprint.Files, len(model))
	}
	stop()
	<-followed

	// The incremental fingerprint equals one computed from scratch.
	again := watch(t, files.Options{Root: s.dir, Source: noSource}, files.Query{Patterns: []string{"**/*.json"}})
	if _, fresh := again.sub.Files(); fresh != fingerprint {
		t.Errorf("fingerprint %+v, from scratch %+v", fingerprint, fresh)
	}
}

// TestHintFlood checks that more hints than the limit of dirty paths cause a scan.
func TestHintFlood(t *testing.T) {
	src := newLossySource()
	s := watch(t, files.Options{Source: src.open, Rescan: time.Hour, Debounce: time.Second}, files.Query{Patterns: []string{"*.json"}})
	s.write("a.json", "1") // without a hint
	for i := range 30_000 {
		src.send(s.path(fmt.Sprintf("build/%d.o", i)))
	}
	s.want("created a.json")
}
