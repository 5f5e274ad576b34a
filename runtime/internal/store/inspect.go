package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxNamed bounds how many damaged places an [Inspection] names.
const maxNamed = 20

// An Inspection is what reading a whole database file found.
type Inspection struct {
	Bytes   int64 // of the file
	Used    int64 // of them in pages that hold something
	Pairs   int64 // journal records included
	OneHead bool  // one of the two head pages is unreadable: normal after a power loss, else the newest commit may be missing

	Damaged int      // places
	Places  []string // the first of them, for people
}

// Err returns a [*DamagedError] if something is damaged.
func (i *Inspection) Err(file string) error {
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

// Inspect reads the database file in the state folder path from its first page
// to its last, without bbolt, and reports what is damaged in its structure:
// references, page numbers, places and order of keys. It cannot tell a changed
// value from the true one. No content of the file can end the process. A folder
// without a file, or with an empty one, is sound.
//
// Nobody may write meanwhile: a store that some process has open is a
// [*HeldError]. It reads about 1 GB a second from the page cache.
func Inspect(path string) (Inspection, error) {
	file := filepath.Join(path, dbFile)
	f, err := openShared(file, filepath.Join(path, flagFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Inspection{}, nil
	}
	if err != nil {
		return Inspection{}, fmt.Errorf("inspect store: %w", err)
	}
	defer f.Close()
	return inspectFile(f)
}

// InspectFile is [Inspect] for a file that nobody writes: a snapshot.
func InspectFile(file string) (Inspection, error) {
	f, err := os.Open(file)
	if err != nil {
		return Inspection{}, fmt.Errorf("inspect store: %w", err)
	}
	defer f.Close()
	return inspectFile(f)
}

func inspectFile(f *os.File) (i Inspection, err error) {
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
	i.OneHead = !p.other
	err = p.walk(pageVisitor{
		pair: func(bucket string, key, _ []byte) error {
			i.Pairs++
			// The engine takes such a key apart by its places, without a look.
			if bucket == journalBucket && len(key) != len(seqKey{}) {
				i.note(fmt.Sprintf("the journal has a key of %d bytes", len(key)))
			}
			return nil
		},
		lost: func(l Lost) error { i.note(l.where()); return nil },
	})
	i.Used = int64(p.used()) * p.page
	return i, err
}

// where says what is lost, for people.
func (l *Lost) where() string {
	if l.Bucket == "" {
		return l.Why
	}
	return fmt.Sprintf("bucket %q: %s", l.Bucket, l.Why)
}

// glance looks at the head pages and the length of the file alone: what is cut
// off or no database at all is found without reading the rest. bbolt maps the
// file and would be ended by a signal beyond its end.
func glance(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	_, err = openPages(f, info.Size())
	if err != nil {
		return &DamagedError{Path: f.Name(), Places: []string{err.Error()}, Count: 1}
	}
	return nil
}
