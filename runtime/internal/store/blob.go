package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// blobs is a folder of files named by the SHA-256 of their content:
// ab/cdef... for the digest abcdef..., and tmp/ for files being written.
//
// A digest in known is durable for sure: it was put since the last sweep but
// one. A sweep leaves such blobs alone, because the batch that will name them
// may not be committed yet.
type blobs struct {
	dir   string
	stats *counters

	mu     sync.RWMutex // put holds it shared, a removal exclusively
	closed bool

	knownMu    sync.Mutex
	fresh, old map[[sha256.Size]byte]struct{} // put since the last sweep, and before
}

func openBlobs(dir string) (*blobs, error) {
	if err := makeDirs(dir); err != nil {
		return nil, err
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.RemoveAll(tmp); err != nil { // left by a crash
		return nil, err
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return nil, err
	}
	return &blobs{dir: dir, fresh: map[[sha256.Size]byte]struct{}{}}, nil
}

// PutBlob implements [Store].
func (b *blobs) PutBlob(data []byte) (digest string, err error) {
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:])
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return "", fmt.Errorf("put blob: %w", ErrClosed)
	}
	if b.isKnown(sum) {
		return digest, nil
	}
	wrote, err := b.write(digest, data)
	if err != nil {
		return "", fmt.Errorf("put blob %q: %w", digest, err)
	}
	b.know(sum)
	if wrote {
		b.stats.change(func(s *Stats) { s.Blobs++; s.BlobBytes += uint64(len(data)) })
	}
	return digest, nil
}

// write makes the blob's file durable. A file that is there already is from an
// earlier process, which may have died before its folder was synced, or is
// damaged: it is compared, and written anew if it differs.
func (b *blobs) write(digest string, data []byte) (wrote bool, err error) {
	path := b.path(digest)
	dir := filepath.Dir(path)
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		if err := syncFile(path); err != nil {
			return false, err
		}
		return false, errors.Join(syncDir(dir), syncDir(b.dir))
	}
	f, err := os.CreateTemp(filepath.Join(b.dir, "tmp"), "put-")
	if err != nil {
		return false, err
	}
	defer os.Remove(f.Name()) // gone already after the rename
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	made, err := makeDir(dir)
	if err != nil {
		return false, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return false, err
	}
	if err := syncDir(dir); err != nil {
		return false, err
	}
	if made {
		err = syncDir(b.dir)
	}
	return true, err
}

// Blob implements [Store].
func (b *blobs) Blob(digest string) ([]byte, error) {
	want, err := parseDigest(digest)
	if err != nil {
		return nil, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return nil, fmt.Errorf("read blob: %w", ErrClosed)
	}
	data, err := os.ReadFile(b.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read blob %q: %w", digest, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read blob %q: %w", digest, err)
	}
	if sha256.Sum256(data) != want {
		return nil, fmt.Errorf("read blob %q: %w", digest, ErrCorrupt)
	}
	return data, nil
}

// BlobSize returns the size of a blob without reading it, [ErrNotFound] if there
// is none.
func (b *blobs) BlobSize(digest string) (int64, error) {
	if _, err := parseDigest(digest); err != nil {
		return 0, err
	}
	info, err := os.Stat(b.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("size of blob %q: %w", digest, ErrNotFound)
	}
	if err != nil {
		return 0, fmt.Errorf("size of blob %q: %w", digest, err)
	}
	return info.Size(), nil
}

func (b *blobs) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

func (b *blobs) path(digest string) string {
	return filepath.Join(b.dir, digest[:2], digest[2:])
}

func (b *blobs) isKnown(sum [sha256.Size]byte) bool {
	b.knownMu.Lock()
	defer b.knownMu.Unlock()
	if _, ok := b.fresh[sum]; ok {
		return true
	}
	if _, ok := b.old[sum]; ok {
		b.fresh[sum] = struct{}{} // put again: protected for as long as a new one
		return true
	}
	return false
}

func (b *blobs) know(sum [sha256.Size]byte) {
	b.knownMu.Lock()
	defer b.knownMu.Unlock()
	b.fresh[sum] = struct{}{}
}

// parseDigest refuses all but 64 lowercase hexadecimal digits, so a digest
// cannot name another file.
func parseDigest(digest string) (sum [sha256.Size]byte, err error) {
	if len(digest) != 2*sha256.Size {
		return sum, fmt.Errorf("blob %q: %w: no digest", digest, ErrInvalid)
	}
	for i := range sum {
		hi, lo := nibble(digest[2*i]), nibble(digest[2*i+1])
		if hi > 15 || lo > 15 {
			return sum, fmt.Errorf("blob %q: %w: no digest", digest, ErrInvalid)
		}
		sum[i] = hi<<4 | lo
	}
	return sum, nil
}
