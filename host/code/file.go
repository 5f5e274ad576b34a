package code

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxFile is the largest file that is read or edited whole, in bytes.
const maxFile = 32 << 20

// load reads the whole regular file at p. The file is opened without blocking
// and looked at again once it is open, so a pipe or device put in its place
// neither hangs nor is read.
func (w *workspace) load(p *place) ([]byte, error) {
	if err := w.mayRead(p.path); err != nil {
		return nil, err
	}
	if p.info == nil {
		return nil, w.notFound(p.path)
	}
	if err := regular(p.path, p.info); err != nil {
		return nil, err
	}
	f, err := p.dir.OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, w.explain(p.path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, w.explain(p.path, err)
	}
	if err := regular(p.path, info); err != nil {
		return nil, err
	}
	if !os.SameFile(info, p.info) {
		return nil, abi.New(abi.Conflict, fmt.Sprintf("read %q: changed meanwhile", p.path))
	}
	if info.Size() > maxFile {
		return nil, tooLarge(p.path, info.Size())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, w.explain(p.path, err)
	}
	if len(data) > maxFile {
		return nil, tooLarge(p.path, int64(len(data)))
	}
	return data, nil
}

// store puts data at p: a temporary file beside it, synced, then renamed over
// it, so that anyone sees the old file or the new one. The mode of an existing
// file stays. It returns whether the file is new.
func (w *workspace) store(p *place, data []byte) (created bool, err error) {
	if err := w.mayWrite(p.path); err != nil {
		return false, err
	}
	mode := fs.FileMode(0o644)
	if p.info != nil {
		if err := regular(p.path, p.info); err != nil {
			return false, err
		}
		if links(p.info) > 1 {
			return false, &abi.Error{
				Code: abi.Denied, Field: "path", Permanent: true,
				Message: fmt.Sprintf("write %q: the file has another name (a hard link), which may be outside the workspace", p.path),
			}
		}
		mode = p.info.Mode().Perm()
	}
	temp := ".sentinel-" + rand.Text() + ".tmp"
	f, err := p.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, w.explain(p.path, err)
	}
	if err = fill(f, data, mode); err == nil {
		err = p.dir.Rename(temp, p.name)
	}
	if err != nil {
		_ = p.dir.Remove(temp) // the first error says more
		return false, w.explain(p.path, err)
	}
	return p.info == nil, syncDir(p.dir)
}

// fill writes, syncs and closes a temporary file. The mode is set before the file
// gets its name, so there is no moment with a wrong one.
func fill(f *os.File, data []byte, mode fs.FileMode) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// syncDir makes a rename durable.
func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return ignoreUnsupported(f.Sync())
}

// regular refuses folders, pipes, sockets and devices.
func regular(name string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: is a folder", name), Hint: "code/tree lists folders"}
	}
	return &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: is no regular file", name)}
}

// tooLarge names the limit, as every error about a limit does.
func tooLarge(name string, size int64) error {
	return &abi.Error{
		Code: abi.Limit, Field: "path", Permanent: true,
		Message: fmt.Sprintf("open %q: %d bytes, more than the %d that are read whole", name, size, maxFile), Hint: "code/search finds lines in it",
	}
}

// isBinary guesses as git does: a zero byte near the start.
func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 }

// hashOf is what ifHash is compared with.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
