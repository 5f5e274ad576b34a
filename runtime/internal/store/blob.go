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

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// blobs is a folder of files named by the SHA-256 of their content: ab/cdef...
// for the digest abcdef.... Files under construction are in tmp/, which is
// created when it is needed.
//
// A digest in recent or previous was put since the sweep before the last one,
// so its blob is durable. Sweeps keep these blobs, because the batch that will
// name them may not be committed yet.
type blobs struct {
	dir   string
	stats *counters

	mu     sync.RWMutex // PutBlob locks it shared, a removal exclusively
	closed bool

	recentMu         sync.Mutex
	recent, previous map[[sha256.Size]byte]struct{} // put since the last sweep; put between the last two
}

// openBlobs creates the folder. On a full disk the first put does that later.
func openBlobs(dir string) (*blobs, error) {
	if err := makeDirs(dir); err != nil && !IsFull(err) {
		return nil, err
	}
	b := &blobs{dir: dir, recent: map[[sha256.Size]byte]struct{}{}}
	return b, os.RemoveAll(b.tmp()) // left by a crash
}

func (b *blobs) tmp() string { return filepath.Join(b.dir, "tmp") }

// createTemp creates a file to write a blob to.
func (b *blobs) createTemp() (*os.File, error) {
	f, err := os.CreateTemp(b.tmp(), "put-")
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := makeDirs(b.tmp()); err != nil {
		return nil, err
	}
	return os.CreateTemp(b.tmp(), "put-")
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
	if b.isDurable(sum) {
		return digest, nil
	}
	wrote, err := b.write(digest, data)
	if err != nil {
		return "", fmt.Errorf("put blob %q: %w", digest, err)
	}
	b.markDurable(sum)
	if wrote {
		b.stats.change(func(s *Stats) { s.Blobs++; s.BlobBytes += uint64(len(data)) })
	}
	return digest, nil
}

// write makes the blob's file durable. An existing file was written by an
// earlier process, which may have crashed before it synced the folder, or it is
// damaged. So write compares it with data, and replaces it if it differs.
func (b *blobs) write(digest string, data []byte) (wrote bool, err error) {
	path := b.path(digest)
	dir := filepath.Dir(path)
	if have, err := regularfile.Read(path, regularfile.Unlimited); err == nil && bytes.Equal(have, data) {
		if err := syncFile(path); err != nil {
			return false, err
		}
		return false, errors.Join(syncDir(dir), syncDir(b.dir))
	}
	f, err := b.createTemp()
	if err != nil {
		return false, err
	}
	defer os.Remove(f.Name()) // a no-op after the rename
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
	data, err := regularfile.Read(b.path(digest), regularfile.Unlimited)
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

// ReadBlob returns a blob of the store in a folder that is not open. Errors are those of [Store].Blob.
func ReadBlob(dir, digest string) ([]byte, error) {
	return (&blobs{dir: filepath.Join(dir, blobDir)}).Blob(digest)
}

// BlobSize returns the size of a blob without reading it. The error is
// [ErrNotFound] if it does not exist.
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

func (b *blobs) isDurable(sum [sha256.Size]byte) bool {
	b.recentMu.Lock()
	defer b.recentMu.Unlock()
	if _, ok := b.recent[sum]; ok {
		return true
	}
	if _, ok := b.previous[sum]; ok {
		b.recent[sum] = struct{}{} // protect it from sweeps as long as a new one
		return true
	}
	return false
}

func (b *blobs) markDurable(sum [sha256.Size]byte) {
	b.recentMu.Lock()
	defer b.recentMu.Unlock()
	b.recent[sum] = struct{}{}
}

// parseDigest accepts exactly 64 lowercase hexadecimal digits, so that a digest
// cannot name another file.
func parseDigest(digest string) (sum [sha256.Size]byte, err error) {
	if len(digest) != 2*sha256.Size {
		return sum, fmt.Errorf("blob %q: %w: want 64 lowercase hexadecimal digits", digest, ErrInvalid)
	}
	for i := range sum {
		hi, lo := nibble(digest[2*i]), nibble(digest[2*i+1])
		if hi > 15 || lo > 15 {
			return sum, fmt.Errorf("blob %q: %w: want 64 lowercase hexadecimal digits", digest, ErrInvalid)
		}
		sum[i] = hi<<4 | lo
	}
	return sum, nil
}
