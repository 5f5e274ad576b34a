package checkpoint

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Modes of git.
const (
	modeFile    = "100644"
	modeProgram = "100755"
	modeLink    = "120000"
)

// Folders in the tree of a checkpoint. Patches show those of filesDir.
const (
	filesDir   = "files"   // contents of files that git lists
	ignoredDir = "ignored" // contents of others
	indexDir   = "index"   // chunks of the index
)

// maxWhole limits the size of a file that is read into memory; larger ones are streamed, which
// git does as well.
const maxWhole = 16 << 20

// stored is what the message of a commit has.
type stored struct {
	Checkpoint
	Chunks int    `json:"chunks"`
	Index  string `json:"index"` // hash of the ids of the chunks
	Root   root   `json:"root"`
}

// load returns the index of a checkpoint, which it reads once in an operation. One goroutine
// calls it at a time.
func (r *repository) load(ctx context.Context, c *Checkpoint) (x *index, err error) {
	if x = r.loaded[c.ID]; x != nil {
		return x, nil
	}
	if x = r.readNewest(c); x == nil {
		x, err = r.loadFromGit(ctx, c)
	}
	if err == nil {
		x.root = c.root
		r.loaded[c.ID] = x
	}
	return x, err
}

func (r *repository) loadFromGit(ctx context.Context, c *Checkpoint) (*index, error) {
	var names strings.Builder
	for i := range c.chunks {
		fmt.Fprintf(&names, "%s:%s/%d\n", c.ref(), indexDir, i)
	}
	rest, err := r.must(ctx, names.String(), "cat-file", "--batch=%(objectname) %(objectsize)")
	if err != nil {
		return nil, err
	}
	x := &index{ids: make([]string, c.chunks)}
	for i := range c.chunks {
		head, behind, _ := strings.Cut(rest, "\n")
		id, length, _ := strings.Cut(head, " ")
		size, err := strconv.Atoi(length)
		if err != nil || size < 0 || len(behind) < size+1 {
			return nil, fmt.Errorf("checkpoint %s: %w: %s", c.ID, errIndex, head)
		}
		if err := x.decode(behind[:size]); err != nil {
			return nil, fmt.Errorf("checkpoint %s: %w", c.ID, err)
		}
		x.ids[i], rest = id, behind[size+1:]
	}
	return x, nil
}

// commit keeps the contents of a scan and makes a commit of it with a reference, which git
// writes when all else is stored. It is tried again if git fails: the git of a process that
// was killed may still be about to end.
func (r *repository) commit(ctx context.Context, s *scan, c Checkpoint) (Checkpoint, error) {
	for delay := 100 * time.Millisecond; ; delay *= 4 {
		out, err := r.tryCommit(ctx, s, c)
		if err == nil || ctx.Err() != nil || delay > 2*time.Second || abi.CodeOf(err) != abi.Internal {
			return out, err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		if err := r.tidy(); err != nil {
			return c, err
		}
	}
}

func (r *repository) tryCommit(ctx context.Context, s *scan, c Checkpoint) (Checkpoint, error) {
	if err := r.fits(s); err != nil {
		return c, err
	}
	r.clone(s)
	in, to := io.Pipe()
	ended := make(chan error, 1)
	f := &feeder{r: r, scan: s, out: bufio.NewWriterSize(to, 256<<10)}
	go func() { // ends when all is written, or git has ended and in is closed
		var err error
		c, err = f.feed(ctx, c)
		ended <- err
		_ = to.CloseWithError(err)
	}()
	// Without deltas, which a later repack finds among all objects.
	a, err := r.exec(ctx, in, "fast-import", "--depth=0", "--quiet", "--force", "--done", "--date-format=now")
	_ = in.Close()
	failed := <-ended
	switch {
	case failed != nil && !errors.Is(failed, io.ErrClosedPipe):
		return c, failed
	case err != nil:
		return c, err
	case a.Code != 0:
		return c, storage(gitexec.Fatal("fast-import", a))
	}
	r.s.opt.At("referenced")
	if c.ID != "" {
		r.loaded[c.ID] = &index{root: s.root, folders: s.folders, ids: f.ids}
		r.writeNewest(f)
	}
	return c, failed
}

// fits returns an error if the files that are to be kept exceed what all checkpoints of a
// workspace may have.
func (r *repository) fits(s *scan) error {
	total := int64(0)
	for _, it := range s.fresh {
		if !it.must { // the restore has counted those
			total += it.size
		}
	}
	if total <= r.s.opt.Bytes {
		return nil
	}
	return &abi.Error{
		Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("checkpoint of %q: its files have %d MiB, and all checkpoints of a workspace may have %d MiB", r.workspace, total>>20, r.s.opt.Bytes>>20),
		Hint: "use a smaller folder as the workspace, have git ignore what is generated, or raise checkpoints.size in the configuration",
	}
}

// A feeder writes what fast-import reads.
type feeder struct {
	r *repository
	*scan
	out    *bufio.Writer
	chunks [][]byte // of the index
	ids    []string // of them
}

func (f *feeder) feed(ctx context.Context, c Checkpoint) (Checkpoint, error) {
	reader, err := openReader(f.r.workspace)
	if err != nil {
		return c, err
	}
	defer reader.close()
	for i := range f.fresh {
		it := &f.fresh[i]
		if err := ctx.Err(); err != nil {
			return c, err
		}
		if err := f.keep(ctx, reader, it); err != nil {
			return c, err
		}
	}
	f.drop()
	f.r.s.opt.At("written")
	f.chunks = f.encode()
	f.ids = make([]string, len(f.chunks))
	for i, chunk := range f.chunks {
		id := blobID(chunk)
		f.ids[i] = hex.EncodeToString(id[:])
		if f.before != nil && slices.Contains(f.before.ids, f.ids[i]) {
			continue
		}
		if err := f.blob(chunk); err != nil {
			return c, err
		}
	}
	f.count(&c)
	c.chunks, c.index = len(f.chunks), hashOf(f.ids)
	text, err := json.Marshal(stored{c, c.chunks, c.index, f.root})
	if err != nil {
		return c, err
	}
	fmt.Fprintf(f.out, "commit %s\ncommitter sentinel <sentinel@localhost> now\ndata %d\n%s\n", c.ref(), len(text), text)
	if f.base != nil {
		fmt.Fprintf(f.out, "M 040000 %s \"\"\nD %s\n", f.base.tree, indexDir)
	}
	f.tree()
	for i, id := range f.ids {
		fmt.Fprintf(f.out, "M %s %s %s/%d\n", modeFile, id, indexDir, i)
	}
	_, _ = f.out.WriteString("\ndone\n") // Flush returns its error
	return c, f.out.Flush()
}

// tree writes how the tree differs from that of the base. What is removed comes first, since
// a folder may have taken the place of a file.
func (f *feeder) tree() {
	var put strings.Builder
	merge(func(dir string, nodes []*node) {
		a, b := nodes[0], nodes[1]
		if a != nil && b != nil && a.content == b.content && a.mode == b.mode && a.kind == b.kind && a.flags == b.flags {
			return
		}
		was, is := treeEntry(dir, nodes[1]), treeEntry(dir, nodes[0])
		if was == is {
			return
		}
		if was.path != "" && was.path != is.path {
			fmt.Fprintf(f.out, "D %s\n", quotePath(was.path))
		}
		if is.path != "" {
			fmt.Fprintf(&put, "M %s %s %s\n", is.mode, is.id, quotePath(is.path))
		}
	}, f.index, f.before)
	_, _ = f.out.WriteString(put.String()) // Flush returns its error
}

// A treeState is a file in the tree of a checkpoint.
type treeState struct{ path, mode, id string }

func treeEntry(dir string, n *node) (t treeState) {
	if n == nil || n.content.store != storeGit {
		return t
	}
	top := filesDir
	if n.flags&flagIgnored != 0 {
		top = ignoredDir
	}
	t = treeState{join(top, join(dir, n.name)), modeFile, hex.EncodeToString(n.content.id[:])}
	switch {
	case n.kind == kindLink:
		t.mode = modeLink
	case n.mode&0o100 != 0:
		t.mode = modeProgram
	}
	return t
}

// quotePath writes a path as fast-import reads it.
func quotePath(name string) string {
	if !strings.ContainsAny(name, "\n\"\\") {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}

// count sets what the checkpoint says of itself.
func (f *feeder) count(c *Checkpoint) {
	c.Files, c.Uncovered = 0, f.Uncovered
	for i := range f.folders {
		for j := range f.folders[i].nodes {
			n := &f.folders[i].nodes[j]
			switch {
			case n.kept():
				c.Files++
			case n.kind != kindFile && n.kind != kindLink:
			case n.flags&flagUnreadable != 0:
				c.Uncovered.add(&c.Uncovered.Unreadable, join(f.folders[i].path, n.name))
			case n.flags&flagIgnored != 0:
				c.Uncovered.Ignored++
			default:
				c.Uncovered.add(&c.Uncovered.Large, join(f.folders[i].path, n.name))
			}
		}
	}
}

func (f *feeder) blob(data []byte) error {
	if _, err := fmt.Fprintf(f.out, "blob\ndata %d\n", len(data)); err != nil {
		return err
	}
	_, err := f.out.Write(append(data, '\n'))
	return err
}

// blobID is the id that git gives a blob.
func blobID(data []byte) [20]byte {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data)) // a hash does not fail
	_, _ = h.Write(data)
	return [20]byte(h.Sum(nil))
}

// keep writes the content of a file or link, and sets its state to the one with that content.
// A file that is gone or cannot be read has none.
func (f *feeder) keep(ctx context.Context, reader *folderReader, it *item) error {
	for range 3 {
		again, err := f.tryKeep(ctx, reader, it)
		if err != nil || !again {
			return err
		}
	}
	it.content = content{} // it changes all the time
	return nil
}

// tryKeep reports whether a file was written while it was read.
func (f *feeder) tryKeep(ctx context.Context, reader *folderReader, it *item) (again bool, err error) {
	it.content = content{}
	if it.kind == kindLink {
		target := ""
		dir, err := reader.enter(it.path())
		if err == nil {
			target, err = dir.readlink(path.Base(it.path()))
		}
		if err != nil {
			it.kind = 0 // gone, or replaced
			return false, nil
		}
		it.content = content{storeGit, blobID([]byte(target))}
		return false, f.blob([]byte(target))
	}
	file, now, err := reader.open(it.path())
	if err != nil {
		if it.flags |= flagUnreadable; gone(err) {
			it.kind = 0
		}
		return false, nil
	}
	defer file.Close()
	if !it.must && now.size > max(it.size, f.r.s.opt.FileBytes) { // it has grown
		return false, nil
	}
	if !now.sameFile(it.node) {
		if err := settled(ctx, max(now.ctime, now.mtime)); err != nil {
			return false, err
		}
	}
	id, whole, err := f.write(file, now.size)
	if err != nil {
		return false, err
	}
	after, err := statFile(file)
	if err != nil || !whole || !after.sameFile(&now) {
		return true, nil
	}
	name, flags := it.name, it.flags
	*it.node = now
	it.name, it.flags, it.content = name, flags, content{storeGit, id}
	return false, nil
}

// write writes a blob of a size that was announced. whole is false if there is less to read.
func (f *feeder) write(file io.Reader, size int64) (id [20]byte, whole bool, err error) {
	if size <= maxWhole {
		data := make([]byte, size, size+1) // one more for the line feed behind it
		n, err := io.ReadFull(file, data)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return id, false, nil // as one that is written all the time
		}
		if data = data[:n]; int64(n) < size {
			return id, false, nil
		}
		return blobID(data), true, f.blob(data)
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", size)         // a hash does not fail
	fmt.Fprintf(f.out, "blob\ndata %d\n", size) // as below
	n, err := io.Copy(io.MultiWriter(f.out, h), io.LimitReader(file, size))
	for rest := size - n; rest > 0; { // the size was announced
		part := min(rest, int64(len(zeros)))
		if _, err := f.out.Write(zeros[:part]); err != nil {
			return id, false, err
		}
		rest -= part
	}
	if failed := f.out.WriteByte('\n'); failed != nil {
		return id, false, failed // of git
	}
	return [20]byte(h.Sum(nil)), n == size && err == nil, nil
}

var zeros [32 << 10]byte

// hash returns the content of a file or link as it would be kept.
func (r *repository) hash(reader *folderReader, name string, n *node) (content, error) {
	if n.kind == kindLink {
		dir, err := reader.enter(name)
		if err != nil {
			return content{}, err
		}
		target, err := dir.readlink(path.Base(name))
		return content{storeGit, blobID([]byte(target))}, err
	}
	file, now, err := reader.open(name)
	if err != nil {
		return content{}, err
	}
	defer file.Close()
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", now.size) // a hash does not fail
	size, err := io.Copy(h, file)
	if err == nil && size != now.size {
		err = fmt.Errorf("%q: %w", name, fs.ErrInvalid)
	}
	return content{storeGit, [20]byte(h.Sum(nil))}, err
}

// newClone returns the name of a clone.
func newClone() (id [20]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
