package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// compactTxBytes is the payload of one transaction of a copy, in bytes.
const compactTxBytes = 8 << 20

// compactSuffix is the suffix of an unfinished copy.
const compactSuffix = ".compact"

// Compacted is the result of [Compact].
type Compacted struct {
	Before, After int64 // size of the file in bytes
}

// Compact copies the pairs of the database file in the state folder path to a
// new file, which replaces it. bbolt never shrinks a file otherwise. If another
// process has the store open the error is a [*HeldError], and if it is damaged
// a [*DamagedError].
func Compact(ctx context.Context, path string, o Options) (done Compacted, err error) {
	o = o.withDefaults()
	file := filepath.Join(path, dbFile)
	if _, err := os.Stat(file); err != nil {
		return done, fmt.Errorf("compact store: %w", err)
	}
	if err := checkBeforeOpen(ctx, path, o); err != nil {
		return done, err
	}
	b, err := openBolt(file, o)
	if errors.Is(err, berrors.ErrTimeout) {
		return done, newHeldError(file, filepath.Join(path, flagFile))
	}
	if err != nil {
		return done, fmt.Errorf("compact store %q: %w", file, err)
	}
	done, err = compact(ctx, b.DB, file)
	return done, errors.Join(err, b.Close())
}

// shouldCompact reports whether a copy would save enough: the file is larger than
// above and more than half empty.
func shouldCompact(b *bolt.DB, file string, above int64) bool {
	bytes, free := fileStats(b, file, int64(b.Info().PageSize))
	return bytes > above && free > bytes/2
}

// fileStats returns the size of the file and how much of it is free, in bytes.
func fileStats(b *bolt.DB, file string, page int64) (bytes, free int64) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, 0 // the file was deleted or moved while it is open, so its size is unknown
	}
	s := b.Stats()
	return info.Size(), int64(s.FreePageN+s.PendingPageN) * page
}

// compactAndReopen replaces an open file by a copy and opens the copy. If the
// copy cannot be made it returns the file as it is.
func compactAndReopen(ctx context.Context, b openFile, file string, o Options) (openFile, error) {
	begin := time.Now()
	done, err := compact(ctx, b.DB, file)
	if errors.Is(err, ErrDamaged) || err != nil && ctx.Err() != nil {
		return openFile{}, errors.Join(err, b.Close())
	}
	if err != nil {
		o.Logger.Warn("compaction failed; the store is used as it is", "store", file, "error", err)
		return b, nil
	}
	o.Logger.Info("store compacted", "store", file, "before", done.Before, "after", done.After, "took", time.Since(begin))
	if err := b.Close(); err != nil {
		return openFile{}, err
	}
	return openBolt(file, o)
}

// compact makes a copy of the file, inspects it, and renames it over the file,
// whose lock b has. The lock stays with the old file: a process that waits for
// the lock notices that the name refers to another file. There must be no
// commits meanwhile.
func compact(ctx context.Context, b *bolt.DB, file string) (done Compacted, err error) {
	var free int64
	done.Before, free = fileStats(b, file, int64(b.Info().PageSize))
	// bbolt copies what it can reach, so damage would be lost without notice.
	// Inspecting the source first also keeps bbolt from following damaged
	// references.
	source, err := inspectNamed(ctx, file)
	if err == nil {
		err = source.Err(file)
	}
	if err != nil {
		return done, err
	}
	if disk, err := DiskOf(filepath.Dir(file)); err == nil && disk.Free < done.Before-free+compactTxBytes {
		return done, fmt.Errorf("compact store: %w: the copy needs about %d bytes, %d are free", ErrNoSpace, done.Before-free, disk.Free)
	}
	copied := file + compactSuffix
	if err := os.Remove(copied); err != nil && !errors.Is(err, os.ErrNotExist) {
		return done, err
	}
	defer os.Remove(copied) // gone already after the rename
	if err := copyPairs(ctx, copied, b, file); err != nil {
		return done, fmt.Errorf("compact store: %w", err)
	}
	// bbolt copies each value with its key, so the only undetected fault could
	// be a missing pair. Hence compare the numbers of pairs.
	result, err := inspectNamed(ctx, copied)
	if err != nil {
		return done, err
	}
	if result.Damaged > 0 || result.Pairs != source.Pairs {
		return done, fmt.Errorf("compact store: the copy has %d pairs and %d damaged places, the file has %d pairs", result.Pairs, result.Damaged, source.Pairs)
	}
	done.After = result.Bytes
	if err := os.Rename(copied, file); err != nil {
		return done, err
	}
	return done, syncDir(filepath.Dir(file))
}

// copyPairs writes the pairs of b, which has file open, to a new file.
func copyPairs(ctx context.Context, to string, b *bolt.DB, file string) error {
	fault, err := guard(func() error { return copyBolt(ctx, to, b) })
	if fault != nil {
		return explain(fault, file)
	}
	return err
}

// copyBolt writes the pairs of b to a new file and syncs it.
func copyBolt(ctx context.Context, to string, b *bolt.DB) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// One sync at the end is enough: the file is not in use before the rename.
	dst, err := bolt.Open(to, 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	err = bolt.Compact(dst, b, compactTxBytes)
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}
