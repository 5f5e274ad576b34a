package trash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
)

// calls is a context that calls a function before each entry that is deleted.
type calls struct {
	context.Context
	each func() error
}

func (c calls) Err() error { return c.each() }

func TestDeleteNothing(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "a"), filepath.Join(dir, "a", "b")} {
		if err := trash.Delete(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
}

// What a link leads to stays, also if the link is the folder that is to be deleted.
func TestDeleteLeavesTargets(t *testing.T) {
	dir := t.TempDir()
	outside, tree := filepath.Join(dir, "outside"), filepath.Join(dir, "tree")
	folder(t, outside)
	folder(t, tree)
	for name, target := range map[string]string{"absolute": outside, "relative": "../outside", "dangling": "nothing", "loop": ".", "up": ".."} {
		if err := os.Symlink(target, filepath.Join(tree, name)); err != nil {
			t.Skipf("no links on this machine: %v", err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("outside", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{tree, link} {
		if err := trash.Delete(t.Context(), path); err != nil {
			t.Error(err)
		}
		gone(t, path)
	}
	if _, err := os.Stat(filepath.Join(outside, "inner", "closed", "file")); err != nil {
		t.Errorf("outside of the tree: %v", err)
	}
}

// A call whose time is over says so, and the next one deletes the rest.
func TestDeleteUntilTheTimeIsOver(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	for i := range 100 {
		folder(t, filepath.Join(tree, fmt.Sprint(i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := 50
	err := trash.Delete(calls{ctx, func() error {
		if left--; left == 0 {
			cancel()
		}
		return ctx.Err()
	}}, tree)
	if !errors.Is(err, context.Canceled) || strings.Count(err.Error(), "delete") != 1 || strings.Contains(err.Error(), filepath.Dir(tree)) {
		t.Errorf("got %v", err)
	}
	if some, _ := os.ReadDir(tree); len(some) == 0 || len(some) == 100 {
		t.Errorf("%d of 100 folders are left", len(some))
	}
	if err := trash.Delete(t.Context(), tree); err != nil {
		t.Error(err)
	}
	gone(t, tree)
}

// Processes that work on in a removed folder keep neither a removal nor the end of a deletion
// waiting, and nothing outside of the folder is deleted. When they have ended nothing is left.
func TestDeleteBesideWriters(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	folder(t, outside)
	bin := trash.Bin{Dir: filepath.Join(dir, "removed")}
	done := make(chan struct{})
	var writing, removing sync.WaitGroup
	for i := range 4 {
		path := filepath.Join(dir, fmt.Sprint("tree", i))
		folder(t, path)
		in, err := os.OpenRoot(path)
		if err != nil {
			t.Fatal(err)
		}
		writing.Go(func() {
			defer in.Close()
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				// Any of it fails where a folder has just been deleted.
				name := fmt.Sprint("d", n%7)
				_ = in.MkdirAll(name+"/e/f", 0o700)
				_ = in.WriteFile(name+"/e/f/file", nil, 0o600)
				_ = in.WriteFile(fmt.Sprint("file", n%11), nil, 0o600)
				_ = in.Rename(name, "moved")
				_ = in.Symlink("../../outside", name) // in the place of a folder
				_ = in.Symlink("../outside", fmt.Sprint("d", (n+1)%7))
				_ = in.Chmod("moved", 0)
			}
		})
		removing.Go(func() {
			if err := bin.Remove(path); err != nil {
				t.Errorf("remove: %v", err)
			}
			gone(t, path)
			for range 20 {
				_ = bin.Empty(t.Context()) // may fail while files are being written
			}
		})
	}
	removing.Wait()
	close(done)
	writing.Wait()
	bin.Close()
	if err := bin.Empty(t.Context()); err != nil {
		t.Errorf("when all writers have ended: %v", err)
	}
	gone(t, bin.Dir)
	if _, err := os.Stat(filepath.Join(outside, "inner", "closed", "file")); err != nil {
		t.Errorf("outside of the trees: %v", err)
	}
}

// clone makes a folder with 10,000 files, as a clone of an ordinary repository has.
func clone(b *testing.B, path string) {
	b.Helper()
	for i := range 1000 {
		dir := filepath.Join(path, fmt.Sprint("a", i%10), fmt.Sprint("b", i%100), fmt.Sprint("c", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 10 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("file", j, ".go")), []byte("package a\n"), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkDelete deletes clones by Delete and by os.RemoveAll, in turn. The ratio is how
// long Delete takes, with os.RemoveAll as 1.
func BenchmarkDelete(b *testing.B) {
	dir := b.TempDir()
	deletions := []func(string) error{func(path string) error { return trash.Delete(b.Context(), path) }, os.RemoveAll}
	var took [2]time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		for i := range deletions {
			clone(b, filepath.Join(dir, fmt.Sprint(i)))
		}
		b.StartTimer()
		for j := range deletions {
			i := (n + j) % 2 // the second one may find the disk at work for the first
			began := time.Now()
			if err := deletions[i](filepath.Join(dir, fmt.Sprint(i))); err != nil {
				b.Fatal(err)
			}
			took[i] += time.Since(began)
		}
		n++
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "ratio")
	b.ReportMetric(float64(took[0].Milliseconds())/float64(n), "delete-ms/op")
}
