package code

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxFile limits a file that is read or edited as a whole, in bytes.
const maxFile = 32 << 20

// load reads the whole regular file at p.
func (w *workspace) load(p *rootfs.Entry) ([]byte, error) {
	if err := w.mayRead(p.Path); err != nil {
		return nil, err
	}
	f, info, err := w.OpenFile(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxFile {
		return nil, tooLarge(p.Path, info.Size())
	}
	if err := w.call.Count(info.Size()); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, w.Explain(p.Path, err)
	}
	if len(data) > maxFile {
		return nil, tooLarge(p.Path, int64(len(data)))
	}
	if w.model && w.rules.MatchContent(p.Path, data) {
		return nil, w.rules.Refuse(p.Path)
	}
	return data, nil
}

// mayReplace returns an error if a model would replace a file that it must not read: a key
// that it never saw would be lost, or be one that another party knows. Writing what the file has
// already would tell it the content, so that is for a call that is repeated after a crash.
func (w *workspace) mayReplace(p *rootfs.Entry, text []byte) error {
	if !w.model || w.rules.Closed(p.Path) { // WriteFile refuses what is closed
		return nil
	}
	f, _, err := w.OpenFile(p)
	if err != nil {
		return nil // there is none, or WriteFile returns why it cannot be replaced
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return w.Explain(p.Path, err)
	}
	if w.repeated && bytes.Equal(data, text) || !w.rules.MatchContent(p.Path, data) {
		return nil
	}
	return &abi.Error{
		Code: abi.Denied, Field: "path", Permanent: true,
		Message: fmt.Sprintf("write %q: models do not replace files that hold secrets", p.Path),
		Hint:    "a command step or a user can",
	}
}

// tooLarge is the error for a file over the limit.
func tooLarge(name string, size int64) error {
	return &abi.Error{
		Code: abi.Limit, Field: "path", Permanent: true,
		Message: fmt.Sprintf("open %q: %d bytes: want at most %d", name, size, maxFile), Hint: "code/search finds lines in it",
	}
}

// isBinary reports whether a file is probably binary. As in git, one with a zero
// byte near its start is.
func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 }

// hashOf returns the SHA-256 that ifHash is compared with.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
