package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// SweepBlobs removes the blobs for whose digest keep returns false, and returns
// their number and total size. A blob that was put since the sweep before the
// last one is kept in any case, because the batch that names it may not be
// committed yet. So an unused blob is removed by the second sweep after its
// put, or by the first one after a restart. keep may call the store, and puts
// may run meanwhile.
//
// While commits stall it removes nothing and returns the store's Health,
// because the queued batches name blobs too.
func (db *DB) SweepBlobs(keep func(digest string) bool) (removed int, bytes int64, err error) {
	if err := db.Health(); err != nil {
		return 0, 0, fmt.Errorf("sweep blobs: %w", err)
	}
	return db.blobs.sweep(keep)
}

func (b *blobs) sweep(keep func(digest string) bool) (removed int, freed int64, err error) {
	b.age()
	dirs, err := os.ReadDir(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil // the disk was full when the store was opened
	}
	if err != nil {
		return 0, 0, fmt.Errorf("sweep blobs: %w", err)
	}
	for _, dir := range dirs {
		if !dir.IsDir() || len(dir.Name()) != 2 {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(b.dir, dir.Name()))
		if err != nil {
			return removed, freed, fmt.Errorf("sweep blobs: %w", err)
		}
		for _, e := range entries {
			digest := dir.Name() + e.Name()
			sum, err := parseDigest(digest)
			if err != nil || keep(digest) {
				continue
			}
			size, err := b.remove(sum, digest)
			if err != nil {
				return removed, freed, fmt.Errorf("sweep blob %q: %w", digest, err)
			}
			if size >= 0 {
				removed++
				freed += size
			}
		}
	}
	return removed, freed, nil
}

// age makes the digests put since the last sweep the previous generation.
func (b *blobs) age() {
	b.recentMu.Lock()
	defer b.recentMu.Unlock()
	b.previous, b.recent = b.recent, map[[sha256.Size]byte]struct{}{}
}

// remove deletes a blob. If the blob is protected or missing it returns a size
// of -1.
func (b *blobs) remove(sum [sha256.Size]byte, digest string) (size int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return -1, ErrClosed
	}
	if b.protected(sum) {
		return -1, nil
	}
	info, err := os.Stat(b.path(digest))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return -1, nil
		}
		return -1, err
	}
	return info.Size(), os.Remove(b.path(digest))
}

func (b *blobs) protected(sum [sha256.Size]byte) bool {
	b.recentMu.Lock()
	defer b.recentMu.Unlock()
	_, fresh := b.recent[sum]
	_, old := b.previous[sum]
	return fresh || old
}
