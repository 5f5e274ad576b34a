package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// SweepBlobs removes the blobs for whose digest keep returns false and returns
// how many and how large they were. A blob that was put since the sweep before
// the last one stays in any case: the batch that names it may be on its way.
// So what nobody names goes with the second sweep after its put, or with the
// first after a restart. keep may call the store, and puts go on meanwhile.
//
// While commits stall it does nothing and returns the store's Health, because
// batches that are held name blobs too.
func (db *DB) SweepBlobs(keep func(digest string) bool) (removed int, bytes int64, err error) {
	if err := db.Health(); err != nil {
		return 0, 0, fmt.Errorf("sweep blobs: %w", err)
	}
	return db.blobs.sweep(keep)
}

func (b *blobs) sweep(keep func(digest string) bool) (removed int, freed int64, err error) {
	b.age()
	shelves, err := os.ReadDir(b.dir)
	if err != nil {
		return 0, 0, fmt.Errorf("sweep blobs: %w", err)
	}
	for _, shelf := range shelves {
		if !shelf.IsDir() || len(shelf.Name()) != 2 {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(b.dir, shelf.Name()))
		if err != nil {
			return removed, freed, fmt.Errorf("sweep blobs: %w", err)
		}
		for _, e := range entries {
			digest := shelf.Name() + e.Name()
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

// age makes what was put since the last sweep old.
func (b *blobs) age() {
	b.knownMu.Lock()
	defer b.knownMu.Unlock()
	b.old, b.fresh = b.fresh, map[[sha256.Size]byte]struct{}{}
}

// remove deletes a blob unless it is protected; then size is -1.
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
	b.knownMu.Lock()
	defer b.knownMu.Unlock()
	_, fresh := b.fresh[sum]
	_, old := b.old[sum]
	return fresh || old
}
