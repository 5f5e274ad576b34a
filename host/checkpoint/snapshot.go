package checkpoint

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A snapshot is the state of a workspace as a tree of git.
type snapshot struct {
	tree  string
	files int
	left  []string // see listing
	Uncovered
}

// Modes of git.
const (
	modeFile    = "100644"
	modeProgram = "100755"
	modeLink    = "120000"
	modeNone    = "000000"
)

// An entry is a file of which the index gets a new state.
type entry struct {
	path string
	mode string // modeNone to remove it
	size int64
	mark int // of its content in what fast-import reads; 0 for none
	hash string
}

// snapshot brings the index up to date and writes its tree. It is tried again if git fails:
// the git of a process that was killed may still be about to end.
func (r *repository) snapshot(ctx context.Context) (*snapshot, error) {
	for delay := 100 * time.Millisecond; ; delay *= 4 {
		snap, err := r.trySnapshot(ctx)
		if err == nil || ctx.Err() != nil || delay > 2*time.Second || abi.CodeOf(err) != abi.Internal {
			return snap, err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		if err := r.tidy(); err != nil {
			return nil, err
		}
	}
}

// trySnapshot reads files that differ once; git packs their content, which is faster than
// one object file each. The index is replaced when it is complete.
func (r *repository) trySnapshot(ctx context.Context) (*snapshot, error) {
	l, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := r.compare(l)
	if err != nil {
		return nil, err
	}
	// Git locks an index that it writes; a lock that a killed git left is one of the copy.
	own := *r
	own.index = filepath.Join(r.dir, "index."+rand.Text())
	if err := copyFile(r.index, own.index); err != nil {
		return nil, storage(err)
	}
	out, err := own.snapshotOf(ctx, l, entries)
	if err != nil {
		return nil, errors.Join(err, removeIfThere(own.index))
	}
	if err := os.Rename(own.index, r.index); err != nil && !errors.Is(err, fs.ErrNotExist) { // there was never a file
		return nil, err
	}
	r.s.opt.At("indexed")
	return out, nil
}

// snapshotOf writes the entries to the index, and its tree.
func (r *repository) snapshotOf(ctx context.Context, l *listing, entries []entry) (*snapshot, error) {
	out := &snapshot{files: len(l.before), left: l.left}
	if len(entries) > 0 {
		if err := r.store(ctx, l, entries); err != nil {
			return nil, err
		}
		names, err := r.names(ctx, "ls-files", "-z", "--cached")
		if err != nil {
			return nil, err
		}
		out.files = len(names)
	}
	tree, err := r.must(ctx, "", "write-tree")
	out.tree, out.Uncovered = strings.TrimSpace(tree), l.Uncovered
	return out, err
}

// compare returns the files whose state in the index may have to change, sorted.
func (r *repository) compare(l *listing) ([]entry, error) {
	reader, err := openReader(r.workspace)
	if err != nil {
		return nil, err
	}
	defer reader.close()
	var entries []entry
	total := int64(0)
	forget := func(name string) {
		if _, known := slices.BinarySearch(l.before, name); known {
			entries = append(entries, entry{path: name, mode: modeNone})
		}
	}
	for _, name := range l.before {
		if _, still := slices.BinarySearch(l.names, name); !still {
			forget(name)
		}
	}
	for _, name := range l.names {
		_, known := slices.BinarySearch(l.before, name)
		if _, touched := slices.BinarySearch(l.touched, name); known && !touched {
			continue
		}
		e, ok := r.look(reader, l, name)
		if !ok {
			forget(name)
			continue
		}
		total += e.size
		entries = append(entries, e)
	}
	if total > r.s.opt.Bytes {
		return nil, &abi.Error{
			Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("checkpoint of %q: its files have %d MiB, and all checkpoints of a workspace may have %d MiB", r.workspace, total>>20, r.s.opt.Bytes>>20),
			Hint: "use a smaller folder as the workspace, have git ignore what is generated, or raise checkpoints.size in the configuration",
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return entries, nil
}

// look returns the state of a file, without its content. ok is false if it is not covered.
func (r *repository) look(reader *folderReader, l *listing, name string) (e entry, ok bool) {
	dir, err := reader.enter(name)
	if err != nil {
		return e, false // deleted, or behind a link
	}
	info, err := dir.Lstat(path.Base(name))
	if err != nil {
		return e, false
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return entry{path: name, mode: modeLink, size: info.Size()}, true
	case info.IsDir(): // a submodule
		l.add(&l.Repositories, name)
		return e, false
	case !info.Mode().IsRegular():
		return e, false
	case info.Size() > r.s.opt.FileBytes:
		l.add(&l.Large, name)
		return e, false
	}
	return entry{path: name, mode: modeOf(info.Mode()), size: info.Size()}, true
}

func modeOf(m fs.FileMode) string {
	if m&0o100 != 0 {
		return modeProgram
	}
	return modeFile
}

// store writes the content of entries to the repository, and their state to the index.
func (r *repository) store(ctx context.Context, l *listing, entries []entry) error {
	if err := r.write(ctx, l, entries); err != nil {
		return err
	}
	r.s.opt.At("written")
	var lines strings.Builder
	for i := range entries {
		e := &entries[i]
		switch {
		case e.mode == modeNone:
			fmt.Fprintf(&lines, "0 %s\t%s\x00", strings.Repeat("0", 40), e.path)
		case e.hash != "":
			fmt.Fprintf(&lines, "%s %s\t%s\x00", e.mode, e.hash, e.path)
		}
	}
	if _, err := r.must(ctx, lines.String(), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	// The index gets the times and sizes of the files, so that the next checkpoint reads
	// none of them again. Exit code 1 means that a file has changed meanwhile.
	a, err := r.exec(ctx, strings.NewReader(""), "update-index", "-q", "--refresh")
	if err == nil && a.Code > 1 {
		err = storage(gitexec.Fatal("update-index", a))
	}
	return err
}

// write writes the content of entries, and sets their hashes. A file that cannot be read
// is not covered, one that is gone keeps no state.
func (r *repository) write(ctx context.Context, l *listing, entries []entry) error {
	marks := filepath.Join(r.dir, "marks."+rand.Text())
	in, to := io.Pipe()
	ended := make(chan error, 1)
	go func() { // ends when all is written, or git has ended and in is closed
		err := r.feed(to, l, entries)
		ended <- err
		_ = to.CloseWithError(err)
	}()
	a, err := r.exec(ctx, in, "fast-import", "--quiet", "--export-marks="+marks)
	_ = in.Close()
	failed := <-ended
	switch {
	case err != nil:
		return err
	case a.Code != 0:
		return storage(gitexec.Fatal("fast-import", a))
	case failed != nil:
		return failed
	}
	defer os.Remove(marks)
	return readMarks(marks, entries)
}

// feed writes the content of entries as fast-import reads it.
func (r *repository) feed(to io.Writer, l *listing, entries []entry) error {
	reader, err := openReader(r.workspace)
	if err != nil {
		return err
	}
	defer reader.close()
	out := bufio.NewWriterSize(to, 256<<10)
	mark := 0
	for i := range entries {
		e := &entries[i]
		if e.mode == modeNone {
			continue
		}
		data, err := r.content(reader, e)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			e.mode = modeNone
			continue
		case err != nil:
			l.add(&l.Unreadable, e.path)
			e.mode = modeNone
			continue
		case int64(len(data)) > r.s.opt.FileBytes: // it has grown
			l.add(&l.Large, e.path)
			e.mode = modeNone
			continue
		}
		mark++
		e.mark = mark
		if _, err := fmt.Fprintf(out, "blob\nmark :%d\ndata %d\n", mark, len(data)); err != nil {
			return err
		}
		if _, err := out.Write(append(data, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// content reads a file or the target of a link. The mode is that of the file that was read.
func (r *repository) content(reader *folderReader, e *entry) ([]byte, error) {
	dir, err := reader.enter(e.path)
	if err != nil {
		return nil, err
	}
	base := path.Base(e.path)
	if e.mode == modeLink {
		target, err := dir.Readlink(base)
		return []byte(target), err
	}
	seen, err := dir.Lstat(base)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, fmt.Errorf("%q: %w", e.path, fs.ErrNotExist) // it was replaced
	}
	f, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(seen, info) {
		return nil, fmt.Errorf("%q: %w", e.path, fs.ErrNotExist) // it was replaced
	}
	e.mode = modeOf(info.Mode())
	data := make([]byte, 0, info.Size()+1) // one more for the line feed behind it
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil || int64(len(data)) > r.s.opt.FileBytes {
			return data, err
		}
		data = slices.Grow(data, 512)
	}
}

// readMarks reads the hashes of the contents that fast-import has written.
func readMarks(file string, entries []entry) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	hashes := map[int]string{}
	for line := range strings.Lines(string(text)) {
		mark, hash, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), ":"), " ")
		n, err := strconv.Atoi(mark)
		if err != nil {
			return fmt.Errorf("read marks of git: %q", line)
		}
		hashes[n] = hash
	}
	for i := range entries {
		e := &entries[i]
		if e.hash = hashes[e.mark]; e.mark > 0 && e.hash == "" {
			return fmt.Errorf("git has not written %q", e.path)
		}
	}
	return nil
}

// copyFile copies a file that may be missing.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return cmp.Or(err, out.Close())
}

func removeIfThere(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
