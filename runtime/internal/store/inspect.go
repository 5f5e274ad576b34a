package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// checkEvery is after how many pairs an inspection looks whether its context has ended.
const checkEvery = 256

// maxNamed bounds how many damaged places an [Inspection] describes.
const maxNamed = 20

// An Inspection is the result of reading a whole database file.
type Inspection struct {
	Bytes   int64  // size of the file
	Store   string // ID of the store, "" if it cannot be read
	Used    int64  // bytes of the file in pages that are in use
	Pairs   int64  // including journal records
	OneMeta bool   // one of the two meta pages is unreadable or an old version: normal after a power loss, otherwise the newest commit may be missing

	Format int    // of the store; 0 also if it has none or it cannot be read
	Writer string // version of the program that gave the store this format, "" if unknown

	Damaged int      // damaged places found
	Places  []string // the first of them, for people

	txid        uint64 // transaction number of the newest meta page
	noSums      int    // values whose checksum does not match
	otherDamage int    // damaged places that are something else
	formatLost  bool   // the format cannot be read
}

// Err returns a [*FormatError] if this program does not read the format, and a
// [*DamagedError] if there is damage.
func (i *Inspection) Err(file string) error {
	if err := i.checkFormat(file); err != nil {
		return err
	}
	if i.Damaged == 0 {
		return nil
	}
	return &DamagedError{Path: file, Places: i.Places, Count: i.Damaged}
}

func (i *Inspection) note(why string) {
	i.Damaged++
	if len(i.Places) < maxNamed {
		i.Places = append(i.Places, why)
	}
}

// Inspect reads the whole database file in the state folder path without bbolt
// and reports damage: to references, page numbers, the list of free pages,
// positions and order of keys, and checksums of values. No content of the file can crash the process. A
// missing or empty file is sound, unless other files of an earlier store exist.
//
// No process may write the file meanwhile: if one has the store open, the error
// is a [*HeldError]. Inspect reads 0.5 to 1 GB/s from the page cache.
func Inspect(path string) (Inspection, error) {
	if err := checkFolderFormat(path); err != nil {
		return Inspection{}, err
	}
	file := filepath.Join(path, dbFile)
	f, err := openShared(file, filepath.Join(path, flagFile))
	if errors.Is(err, fs.ErrNotExist) {
		return inspectMissing(path, "the file is missing"), nil
	}
	if err != nil {
		return Inspection{}, fmt.Errorf("inspect store: %w", err)
	}
	defer f.Close()
	return inspectStore(context.Background(), path, f)
}

// inspectStore reads the database file of a state folder.
func inspectStore(ctx context.Context, path string, f *os.File) (Inspection, error) {
	i, err := inspectFile(ctx, f)
	if i.formatLost && i.Format == 0 {
		f, readErr := readFolderFormat(path)
		if i.Format = f.Format; err == nil {
			err = readErr
		}
	}
	if err == nil && i.Bytes == 0 {
		return inspectMissing(path, "the file is empty"), nil
	}
	return i, err
}

// inspectMissing returns the result for a missing or empty file; what says
// which.
func inspectMissing(path, what string) (i Inspection) {
	var lost *DamagedError
	if errors.As(checkNoLeftovers(path, what), &lost) {
		i.note(lost.Places[0])
	}
	return i
}

// InspectFile is [Inspect] for a file that no process writes, such as a store
// snapshot.
func InspectFile(file string) (Inspection, error) {
	return inspectNamed(context.Background(), file)
}

// inspectNamed is InspectFile until ctx ends.
func inspectNamed(ctx context.Context, file string) (Inspection, error) {
	f, err := regularfile.OpenFile(file, os.O_RDONLY, 0)
	if err != nil {
		return Inspection{}, fmt.Errorf("inspect store: %w", err)
	}
	defer f.Close()
	return inspectFile(ctx, f)
}

// inspectFile reads a whole file, or until ctx ends: then the error is the cause, and what was found is not all.
func inspectFile(ctx context.Context, f *os.File) (i Inspection, err error) {
	info, err := f.Stat()
	if err != nil {
		return i, fmt.Errorf("inspect store: %w", err)
	}
	i.Bytes = info.Size()
	if i.Bytes == 0 {
		return i, nil
	}
	p, err := openPages(f, i.Bytes)
	if err != nil {
		i.note(err.Error())
	}
	if p == nil {
		return i, nil
	}
	i.OneMeta, i.txid = !p.bothMeta, p.meta.txid
	err = p.walk(pageVisitor{
		pair: func(table string, key, value []byte) error {
			if i.Pairs++; i.Pairs%checkEvery == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if table == storeBucket && string(key) == string(idKey) && len(value) == 8 {
				i.Store = idText(binary.BigEndian.Uint64(value))
			}
			if table == storeBucket {
				i.readFormat(key, value)
			}
			if table == journalBucket && len(key) != len(seqKey{}) {
				i.note(fmt.Sprintf("table %q key %s: it is not the key of a journal record", table, keyText(table, key)))
			}
			return nil
		},
		lost: func(l Lost) error {
			i.formatLost = i.formatLost || l.covers(storeBucket, formatKey)
			if i.noSums += l.Values; !l.onlySums {
				i.otherDamage++
			}
			i.note(l.describe())
			return nil
		},
	})
	i.Used = int64(p.used()) * p.page
	return i, err
}

// describe returns a description of the range for people.
func (l *Lost) describe() string {
	if l.Bucket == "" {
		return l.Why
	}
	return fmt.Sprintf("table %q %s", l.Bucket, l.Why)
}
