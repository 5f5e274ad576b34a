package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Limits of the first and last entry, in bytes, and of the number of entries.
const (
	maxInfo    = 1 << 20
	maxList    = 256 << 20
	maxEntries = 2_000_000
)

// read reads a whole archive, checks it, and calls put for each file between the first
// entry and the last.
func read(ctx context.Context, from io.Reader, put func(name string, content io.Reader) error) (info Info, err error) {
	z, err := gzip.NewReader(bufio.NewReaderSize(from, 1<<20))
	if err != nil {
		return info, bad("it is not a backup: %v", err)
	}
	t := tar.NewReader(z)
	digests := map[string]string{}
	for n := 0; ; n++ {
		if ctx.Err() != nil {
			return info, context.Cause(ctx)
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return info, bad("it is not complete: it ends after %d files", n)
		}
		if err != nil {
			return info, bad("after %d files: %v", n, err)
		}
		sum := sha256.New()
		content := io.TeeReader(t, sum)
		switch {
		case n > maxEntries:
			return info, bad("it has more than %d files", maxEntries)
		case n == 0:
			if info, err = readInfo(h, content); err != nil {
				return info, err
			}
		case h.Name == listName:
			if err := checkList(io.LimitReader(t, maxList), digests); err != nil {
				return info, err
			}
			if _, err := io.Copy(io.Discard, z); err != nil { // compares the checksum of the whole, also of names and modes
				return info, bad("it is damaged: %v", err)
			}
			return info, nil
		default:
			if err := checkEntry(h); err != nil {
				return info, err
			}
			if digests[h.Name] != "" {
				return info, bad("%q is in it twice", h.Name)
			}
			err := put(h.Name, content)
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) {
				err = bad("it is not complete or damaged: it ends in %q", h.Name)
			}
			if err != nil {
				return info, err
			}
		}
		digests[h.Name] = hex.EncodeToString(sum.Sum(nil))
	}
}

// readInfo reads the first entry.
func readInfo(h *tar.Header, content io.Reader) (info Info, err error) {
	if h.Name != InfoName {
		return info, bad("it is not a backup: it begins with %q", h.Name)
	}
	text, err := io.ReadAll(io.LimitReader(content, maxInfo))
	if err != nil || json.Unmarshal(text, &info) != nil || info.Format < 1 {
		return info, bad("it is not a backup: %s cannot be read", InfoName)
	}
	if info.Format > Format || info.StoreFormat > runtime.StoreFormat {
		return info, &abi.Error{Code: abi.Denied, Permanent: true,
			Message: fmt.Sprintf("the backup has format %d and a store of format %d, written by sentinel %s; this program reads backups up to %d and stores up to %d", info.Format, info.StoreFormat, info.Version, Format, runtime.StoreFormat),
			Hint:    "restore it with that version or a newer one"}
	}
	return info, nil
}

// checkEntry refuses what this program does not write: other files, links, devices, and names that
// leave the folder.
func checkEntry(h *tar.Header) error {
	local := filepath.FromSlash(h.Name)
	known := entries.MatchString(h.Name) || strings.HasPrefix(h.Name, rootSentinel) && forGit(path.Base(h.Name))
	if h.Typeflag != tar.TypeReg || !known || !filepath.IsLocal(local) || filepath.Clean(local) != local {
		return bad("it has an entry that no backup has: %q", h.Name)
	}
	return nil
}

// checkList compares what was read with the last entry.
func checkList(from io.Reader, digests map[string]string) error {
	text, err := io.ReadAll(from)
	var want map[string]string
	if err != nil || json.Unmarshal(text, &want) != nil {
		return bad("it is not complete: its list of files cannot be read")
	}
	for name, digest := range want {
		switch digests[name] {
		case digest:
		case "":
			return bad("%q is missing in it", name)
		default:
			return bad("%q is damaged", name)
		}
	}
	if !maps.EqualFunc(want, digests, func(string, string) bool { return true }) {
		return bad("it has files that its list does not have")
	}
	return nil
}

// bad returns the error of an archive that cannot be restored.
func bad(format string, args ...any) error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Message: "the backup cannot be used: " + fmt.Sprintf(format, args...), Hint: "nothing was restored; use another backup, or copy this one again"}
}

// Verify reads a whole archive and checks it.
func Verify(ctx context.Context, from io.Reader) (Info, error) {
	return read(ctx, from, func(_ string, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
}

// Target says where an archive is restored.
type Target struct {
	Dir     string // the .sentinel folder, which does not exist or is empty
	Project string // the folder that gets .continuum/sentinels
	MinFree int64  // bytes that stay free on the disk, as in [runtime.Options]
	// Placing is called once the archive is unpacked and checked, before the folder appears.
	// Default nil.
	Placing func() error
}

// Restored is the result of [Restore].
type Restored struct {
	Info
	Dir string `json:"dir"`
	// Beside are the paths of files that were not put in place: the configuration and secrets of
	// the user, and definitions of .continuum that exist with another content.
	Beside []string `json:"beside,omitempty"`
}

// tempSuffix is that of the folder in which an archive is unpacked.
const tempSuffix = ".restoring"

// Restore restores an archive. The folder appears in its place complete and checked, or
// not at all.
func Restore(ctx context.Context, from io.Reader, to Target) (done Restored, err error) {
	done.Dir = to.Dir
	if err := checkEmpty(to.Dir); err != nil {
		return done, err
	}
	temp := to.Dir + tempSuffix
	if err := os.MkdirAll(filepath.Dir(temp), 0o755); err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	if err := os.Mkdir(temp, 0o700); errors.Is(err, fs.ErrExist) {
		return done, &abi.Error{Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("%s exists: another restore is under way, or one was interrupted and has put nothing in place", temp), Hint: "if no other restore is under way, delete that folder and restore again"}
	} else if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	defer func() {
		if runtime.IsDiskFull(err) {
			hint := "free space on the disk of " + filepath.Dir(to.Dir) + " and restore again: nothing was put in place"
			err = &abi.Error{Code: abi.Unavailable, Message: err.Error(), Hint: hint}
		}
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	space := &spaceLimit{dir: temp, minFree: to.MinFree}
	done.Info, err = read(ctx, from, func(name string, content io.Reader) error {
		if forGit(path.Base(name)) { // of a backup by an earlier version
			_, err := io.Copy(io.Discard, content)
			return err
		}
		if isExecution(name) { // a foreign archive may name a process of this machine
			text, err := io.ReadAll(io.LimitReader(content, maxSmall))
			if err != nil {
				return err
			}
			content = bytes.NewReader(withoutProcess(text))
		}
		if err := space.add(fileCost); err != nil {
			return err
		}
		return unpack(filepath.Join(temp, filepath.FromSlash(name)), &spaceReader{content, space})
	})
	if err != nil {
		return done, err
	}
	tree := filepath.Join(temp, rootSentinel)
	if err := runtime.CheckStore(filepath.Join(tree, "state")); err != nil {
		return done, fmt.Errorf("restore: the store in the backup: %w", err)
	}
	if _, err := os.Stat(filepath.Join(tree, "state", "store.db")); err != nil {
		return done, bad("it has no store")
	}
	if to.Placing != nil {
		if err := to.Placing(); err != nil {
			return done, fmt.Errorf("restore: %w", err)
		}
	}
	if err := placeRest(temp, to, &done); err != nil {
		return done, err
	}
	if err := syncTree(tree); err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	if err := os.Remove(to.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is empty
		return done, fmt.Errorf("restore: %w", err)
	}
	if err := os.Rename(tree, to.Dir); err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	if err := atomicfile.SyncDir(filepath.Dir(to.Dir)); err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	return done, os.RemoveAll(temp)
}

// checkEmpty refuses a folder that has something in it.
func checkEmpty(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(list) == 0:
		return nil
	case err != nil:
		return fmt.Errorf("restore: %w", err)
	}
	return &abi.Error{Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("%s is not empty: it has %s", dir, list[0].Name()), Hint: "restore into another folder, or move this one away"}
}

// A spaceLimit ends the unpacking of an archive before it fills the disk: a small archive can have
// any size unpacked.
type spaceLimit struct {
	dir     string
	minFree int64
	unseen  int64 // bytes since the last look at the disk
}

// spaceStep is the number of bytes after which the free space is looked at again.
const spaceStep = 16 << 20

// fileCost is what a file takes on the disk beside its content, in bytes: a small one takes a block.
const fileCost = 4 << 10

// add counts bytes that are written.
func (l *spaceLimit) add(n int64) error {
	if l.unseen += n; l.unseen < spaceStep {
		return nil
	}
	l.unseen = 0
	if err := runtime.CheckSpace(l.dir, l.minFree); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

type spaceReader struct {
	from  io.Reader
	limit *spaceLimit
}

func (r *spaceReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if full := r.limit.add(int64(n)); full != nil {
		return n, full
	}
	return n, err
}

// unpack writes a private file and its folders.
func unpack(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// placeRest puts the definitions of .continuum in place. One that exists is never replaced: if
// it is another, that of the archive is kept in the state folder, as the configuration is.
func placeRest(temp string, to Target, done *Restored) error {
	keep := func(from, folder string) error {
		name := filepath.Join("state", "restored", folder, filepath.Base(from))
		kept := filepath.Join(temp, rootSentinel, name)
		if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		if err := os.Rename(from, kept); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		done.Beside = append(done.Beside, filepath.Join(to.Dir, name))
		return nil
	}
	// The configuration decides what is trusted, so that of an archive counts only if a person copies it.
	configs, err := filesIn(filepath.Join(temp, rootConfig))
	if err != nil {
		return err
	}
	for _, from := range configs {
		if err := keep(from, ""); err != nil {
			return err
		}
	}
	definitions, err := filesIn(filepath.Join(temp, rootContinuum))
	if err != nil || len(definitions) == 0 {
		return err
	}
	dir := filepath.Join(to.Project, ".continuum", "sentinels")
	for _, part := range []string{filepath.Dir(dir), dir} {
		if info, err := os.Lstat(part); err == nil && !info.IsDir() {
			return &abi.Error{Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("restore: %s is a link, or not a folder", part), Hint: "move it away"}
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for _, from := range definitions {
		text, err := regularfile.Read(from, maxSmall)
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		path := filepath.Join(dir, filepath.Base(from))
		have, err := regularfile.Read(path, maxSmall)
		switch {
		case err == nil && bytes.Equal(have, text):
		case errors.Is(err, fs.ErrNotExist):
			if err := atomicfile.Replace(path, text, 0o600); err != nil {
				return fmt.Errorf("restore: %w", err)
			}
		default:
			if err := keep(from, "sentinels"); err != nil { // one may be called as the configuration
				return err
			}
		}
	}
	return nil
}

// filesIn returns the paths of the files in a folder of the unpacked archive, which need not be there.
func filesIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("restore: %w", err)
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths, nil
}

// syncTree fsyncs all folders of a tree.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return atomicfile.SyncDir(path)
	})
}
