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

// compactStep is the payload of one transaction of a copy.
const compactStep = 8 << 20

// compactSuffix names a copy that is not finished.
const compactSuffix = ".compact"

// Compacted says what [Compact] did.
type Compacted struct {
	Before, After int64 // bytes of the file
}

// Compact copies what the file in the state folder path holds to a new one
// that takes its place: bbolt never gives pages back. A store that some process
// has open is a [*HeldError], a damaged one a [*DamagedError].
func Compact(ctx context.Context, path string, o Options) (done Compacted, err error) {
	o = o.withDefaults()
	file := filepath.Join(path, dbFile)
	if _, err := os.Stat(file); err != nil {
		return done, fmt.Errorf("compact store: %w", err)
	}
	if err := checkBefore(path, o); err != nil {
		return done, err
	}
	b, err := openBolt(file, o)
	if errors.Is(err, berrors.ErrTimeout) {
		return done, heldBy(file, filepath.Join(path, flagFile))
	}
	if err != nil {
		return done, fmt.Errorf("compact store %q: %w", file, err)
	}
	done, err = compact(ctx, b, file)
	return done, errors.Join(err, b.Close())
}

// wasteful reports whether a copy would pay.
func wasteful(b *bolt.DB, file string, above int64) bool {
	bytes, free := fileStats(b, file, int64(b.Info().PageSize))
	return bytes > above && free > bytes/2
}

// fileStats returns the bytes of the file and how many of them are free.
func fileStats(b *bolt.DB, file string, page int64) (bytes, free int64) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, 0 // taken away under us; commits go on in it, and nobody can say where
	}
	s := b.Stats()
	return info.Size(), int64(s.FreePageN+s.PendingPageN) * page
}

// compactOpen puts a copy in the place of an open file and opens that. If there
// can be no copy it goes on with the file as it is.
func compactOpen(b *bolt.DB, file string, o Options) (*bolt.DB, error) {
	begin := time.Now()
	done, err := compact(context.Background(), b, file)
	if errors.Is(err, ErrDamaged) {
		return nil, errors.Join(err, b.Close())
	}
	if err != nil {
		o.Logger.Warn("store cannot be compacted; it goes on as it is", "store", file, "error", err)
		return b, nil
	}
	o.Logger.Info("store compacted", "store", file, "before", done.Before, "after", done.After, "took", time.Since(begin))
	if err := b.Close(); err != nil {
		return nil, err
	}
	return openBolt(file, o)
}

// compact makes the copy, reads it whole, and renames it over the file, whose
// lock b has. The lock stays on the old file: whoever waits for it finds that
// it is gone. Nothing may be committed meanwhile.
func compact(ctx context.Context, b *bolt.DB, file string) (done Compacted, err error) {
	var free int64
	done.Before, free = fileStats(b, file, int64(b.Info().PageSize))
	// A copy is made of what can be reached, so damage would be lost silently.
	// Reading the source first keeps bbolt from following damage.
	source, err := InspectFile(file)
	if err == nil {
		err = source.Err(file)
	}
	if err != nil {
		return done, err
	}
	if disk, err := DiskOf(filepath.Dir(file)); err == nil && disk.Free < done.Before-free+compactStep {
		return done, fmt.Errorf("compact store: %w: the copy takes about %d bytes, %d are free", ErrNoRoom, done.Before-free, disk.Free)
	}
	copied := file + compactSuffix
	if err := os.Remove(copied); err != nil && !errors.Is(err, os.ErrNotExist) {
		return done, err
	}
	defer os.Remove(copied) // gone already after the rename
	if err := copyBolt(ctx, copied, b); err != nil {
		return done, fmt.Errorf("compact store: %w", err)
	}
	// The same number of pairs in a sound file: bbolt copies each with its key, so
	// one that is missing is all that could have gone wrong unseen.
	result, err := InspectFile(copied)
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

// copyBolt writes what b holds to a new file, synced.
func copyBolt(ctx context.Context, to string, b *bolt.DB) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// One sync at the end will do: before it is renamed nobody misses the file.
	dst, err := bolt.Open(to, 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	err = bolt.Compact(dst, b, compactStep)
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}
