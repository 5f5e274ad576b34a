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

// maxFile is the largest file that is read or edited whole, in bytes.
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
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, w.Explain(p.Path, err)
	}
	if len(data) > maxFile {
		return nil, tooLarge(p.Path, int64(len(data)))
	}
	if w.model && w.secrets.MatchContent(p.Path, data) {
		return nil, w.secrets.Refuse(p.Path)
	}
	return data, nil
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
