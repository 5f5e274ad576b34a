// Package logfile writes the log of a process without a terminal: a
// file that is rotated by size and whose past is bounded by number or owners, and by age.
package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/internal/share"
)

// Options bound a log. The zero value keeps 5 files of 16 MiB.
type Options struct {
	Size int64         // of a file when it is rotated, in bytes. Default 16 MiB
	Keep int           // rotated files that stay. Default 5
	Age  time.Duration // older rotated files go. Default 0, none do
	Now  func() time.Time

	// Owner returns who a line is counted for. When the rotated files have more than
	// Size × Keep bytes, the owner with the most loses its oldest lines, a file's worth at a
	// time, so that one that writes much removes only its own. Default nil: the oldest file
	// goes.
	Owner func(line []byte) string
	// Reserved reports whether an owner is one of those who have half of that space together:
	// up to there they lose no line. Default nil: none is.
	Reserved func(owner string) bool
}

// A Writer appends to a log file.
//
// # Concurrency
//
// Safe for concurrent use. A write is in one file, whole: lines are not torn
// over two.
type Writer struct {
	path string
	opt  Options

	mu   sync.Mutex
	file *os.File
	size int64
	sink bool // the file is a device that answers at once; it has no size and is not renamed

	owned map[string]map[string]int64 // bytes of each owner in the rotated files that were read
}

var _ io.WriteCloser = (*Writer)(nil)

// Open opens the log at path, going on with what is there. Its folder is made.
// Logs may tell what people work on, so they are the user's alone.
func Open(path string, opt Options) (*Writer, error) {
	if opt.Size <= 0 {
		opt.Size = 16 << 20
	}
	if opt.Keep <= 0 {
		opt.Keep = 5
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	w := &Writer{path: path, opt: opt}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return w, w.prune()
}

func (w *Writer) open() error {
	// Other devices are refused as pipes are: a terminal that is stopped takes nothing, and whatever logs
	// would wait for it.
	open := regularfile.OpenFile
	if w.sink = isSink(w.path); w.sink {
		open = os.OpenFile
	}
	f, err := open(w.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w.file, w.size = f, info.Size()
	return nil
}

// isSink reports whether a path leads to a device that takes or refuses everything at once: /dev/null, or /dev/full, which
// is for tests of a full disk.
func isSink(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc([]string{os.DevNull, "/dev/full"}, func(name string) bool {
		device, err := os.Stat(name)
		return err == nil && device.Mode()&fs.ModeDevice != 0 && os.SameFile(info, device)
	})
}

// Write appends p, rotating before it if the file would grow too large. When
// rotation fails the file grows on: a log that is too long is better than none.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return 0, fs.ErrClosed
	}
	var failed error
	if !w.sink && w.size > 0 && w.size+int64(len(p)) > w.opt.Size {
		failed = w.rotate()
	}
	n, err := w.file.Write(p)
	w.size += int64(n)
	return n, errors.Join(err, failed)
}

// stamp sorts as time does.
const stamp = "20060102T150405.000000000"

// rotate gives the file a name of the past and begins a new one. If that cannot
// be opened the old one stays in use.
func (w *Writer) rotate() error {
	past := w.path + "." + w.opt.Now().UTC().Format(stamp)
	if err := os.Rename(w.path, past); err != nil {
		return err
	}
	old := w.file
	if err := w.open(); err != nil {
		return errors.Join(err, os.Rename(past, w.path))
	}
	return errors.Join(old.Close(), w.prune())
}

// part is a rotated file.
type part struct {
	name string
	at   time.Time
	size int64
}

// past returns the rotated files, the oldest first.
func (w *Writer) past() ([]part, error) {
	entries, err := os.ReadDir(filepath.Dir(w.path))
	if err != nil {
		return nil, err
	}
	var list []part
	for _, e := range entries { // in the order of their names
		tail, ok := strings.CutPrefix(e.Name(), filepath.Base(w.path)+".")
		if !ok {
			continue
		}
		at, err := time.Parse(stamp, tail)
		if err != nil {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // another process was faster
			continue
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() { // reading a pipe would not end
			continue
		}
		list = append(list, part{filepath.Join(filepath.Dir(w.path), e.Name()), at, info.Size()})
	}
	return list, nil
}

// prune removes rotated files that are too old, and those that are too many or the lines
// of who has most.
func (w *Writer) prune() error {
	list, err := w.past()
	if err != nil {
		return err
	}
	var errs []error
	list = slices.DeleteFunc(list, func(p part) bool {
		old := w.opt.Age > 0 && w.opt.Now().Sub(p.at) > w.opt.Age
		if old {
			errs = append(errs, w.remove(p.name))
		}
		return old
	})
	if w.opt.Owner != nil {
		return errors.Join(append(errs, w.thin(list))...)
	}
	for _, p := range list[:max(0, len(list)-w.opt.Keep)] {
		errs = append(errs, w.remove(p.name))
	}
	return errors.Join(errs...)
}

// remove removes a rotated file.
func (w *Writer) remove(name string) error {
	delete(w.owned, name)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// thin removes lines of the owners with the most until the rotated files are small enough. The
// newest of them stays as it is: another process may still have it open.
func (w *Writer) thin(list []part) error {
	total, limit := int64(0), w.opt.Size*int64(w.opt.Keep)
	for _, p := range list {
		total += p.size
	}
	if total <= limit {
		return nil
	}
	list = list[:len(list)-1]
	for _, p := range list {
		if err := w.count(p.name); err != nil {
			return err
		}
	}
	for total > limit {
		most := w.most(list, limit/2)
		i := slices.IndexFunc(list, func(p part) bool { return w.owned[p.name][most] > 0 })
		if i < 0 {
			return nil // all is in the newest one
		}
		total -= w.owned[list[i].name][most]
		var err error
		if list, err = w.drop(list, i, most); err != nil {
			return err
		}
	}
	return nil
}

// most returns the owner with the most lines in the files, by their bytes: of those without
// reserved space if the others have no more than that.
func (w *Writer) most(list []part, space int64) (most string) {
	sums := map[string]int64{}
	for _, p := range list {
		for owner, n := range w.owned[p.name] {
			sums[owner] += n
		}
	}
	most, _ = share.Most(sums, w.opt.Reserved, space)
	return most
}

// count reads a rotated file for the bytes of its owners.
func (w *Writer) count(name string) error {
	if w.owned[name] != nil {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if w.owned == nil {
		w.owned = map[string]map[string]int64{}
	}
	w.owned[name] = map[string]int64{}
	for line := range bytes.Lines(text) {
		w.owned[name][w.opt.Owner(line)] += int64(len(line))
	}
	return nil
}

// drop removes the lines of an owner from list[i] and returns the list after that. What is
// left becomes one file with the one before it where it fits, so that their number is
// bounded. A crash between the two leaves lines twice, and loses none.
func (w *Writer) drop(list []part, i int, owner string) ([]part, error) {
	text, err := os.ReadFile(list[i].name)
	if err != nil {
		return nil, err
	}
	var left []byte
	for line := range bytes.Lines(text) {
		if w.opt.Owner(line) != owner {
			left = append(left, line...)
		}
	}
	if len(left) == 0 {
		err := w.remove(list[i].name)
		return slices.Delete(list, i, i+1), err
	}
	before := -1
	if i > 0 && list[i-1].size+int64(len(left)) <= w.opt.Size {
		earlier, err := os.ReadFile(list[i-1].name)
		if err != nil {
			return nil, err
		}
		if n := len(earlier); n > 0 && earlier[n-1] != '\n' { // a crash left half a line
			earlier = append(earlier, '\n')
		}
		before, left = i-1, append(earlier, left...)
	}
	if err := atomicfile.Replace(list[i].name, left, 0o600); err != nil {
		return nil, err
	}
	list[i].size = int64(len(left))
	delete(w.owned, list[i].name)
	if err := w.count(list[i].name); err != nil || before < 0 {
		return list, err
	}
	err = w.remove(list[before].name)
	return slices.Delete(list, before, i), err
}

// Close ends the log; later writes are refused. It is idempotent.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}
