package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
)

// SetAfterCommit makes every successful commit look failed while fn returns an
// error. It must not be called during a commit.
func (db *DB) SetAfterCommit(fn func() error) { db.afterCommit = fn }

// CrashCopy writes the committed state to another state folder, which is what a
// crash at this moment would leave. Blobs are not copied.
func (db *DB) CrashCopy(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return db.bolt.View(func(tx *bolt.Tx) error {
		return tx.CopyFile(filepath.Join(path, dbFile), 0o600)
	})
}

// Walk reads a database file without bbolt. It returns its pairs as "bucket
// key=value", and the lost ranges.
func Walk(file string) (pairs []string, lost []Lost, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	p, err := openPages(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, nil, err
	}
	err = p.walk(pageVisitor{
		pair: func(bucket string, k, v []byte) error {
			pairs = append(pairs, fmt.Sprintf("%s %x=%x", bucket, k, v))
			return nil
		},
		lost: func(l Lost) error { lost = append(lost, l); return nil },
	})
	return pairs, lost, err
}

// WalkBytes walks arbitrary bytes.
func WalkBytes(b []byte) (i Inspection) {
	p, err := openPages(bytes.NewReader(b), int64(len(b)))
	if p == nil {
		i.note(err.Error())
		return i
	}
	_ = p.walk(pageVisitor{
		pair: func(string, []byte, []byte) error { i.Pairs++; return nil },
		lost: func(l Lost) error { i.note(l.describe()); return nil },
	})
	return i
}

// BoltPairs returns what Walk must find in a sound file.
func BoltPairs(file string) (pairs []string, err error) {
	b, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	err = b.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, stored []byte) error {
				v, ok := splitChecksum(string(name), k, stored)
				if !ok {
					return fmt.Errorf("table %q key %x: the checksum does not match", name, k)
				}
				pairs = append(pairs, fmt.Sprintf("%s %x=%x", name, k, v))
				return nil
			})
		})
	})
	return pairs, err
}

// CreateWithoutTables writes a file as bbolt creates it, without tables.
func CreateWithoutTables(file string) error {
	b, err := bolt.Open(file, 0o600, nil)
	if err != nil {
		return err
	}
	return b.Close()
}

// Verify returns what bbolt's own check finds. A file that Inspect reports as
// sound must pass it; otherwise it may crash the process.
func Verify(path string) error {
	b, err := bolt.Open(filepath.Join(path, dbFile), 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer b.Close()
	return b.View(func(tx *bolt.Tx) error {
		var found error
		for problem := range tx.Check() { // read the channel to its end, because a goroutine writes to it
			found = errors.Join(found, problem)
		}
		return found
	})
}

// StoreFreePages makes bbolt store its list of free pages in the file.
func StoreFreePages(file string) error {
	b, err := bolt.Open(file, 0o600, nil) // writes the list, because it is missing
	if err != nil {
		return err
	}
	return b.Close()
}

// Explain is explain.
var Explain = explain

// CopyWhile copies the pairs of a sound file to another one as a compaction does,
// after hurt has damaged the file.
func CopyWhile(file, to string, hurt func()) error {
	b, err := openBolt(file, Options{}.withDefaults())
	if err != nil {
		return err
	}
	defer b.Close()
	hurt()
	return copyPairs(context.Background(), to, b.DB, file)
}

// BoltOpen opens a file as Open does, without reading it before, and closes it.
func BoltOpen(file string) error {
	b, err := openBolt(file, Options{}.withDefaults())
	if err != nil {
		return err
	}
	return b.Close()
}

// SetFormat gives a closed store a format and its writer; 0 makes it one of before
// the number was written.
func SetFormat(path string, format int, writer string) error {
	if format == 0 {
		if err := removeIfExists(filepath.Join(path, FormatFile)); err != nil {
			return err
		}
	}
	b, err := bolt.Open(filepath.Join(path, dbFile), 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		return err
	}
	err = b.Update(func(tx *bolt.Tx) error {
		metadata := tx.Bucket([]byte(storeBucket))
		if format == 0 {
			return errors.Join(metadata.Delete(formatKey), metadata.Delete(writerKey))
		}
		return (&DB{}).putFormat(metadata, format, writer)
	})
	return errors.Join(err, b.Close())
}

// RemoveChecksums makes a store as it was before values had checksums.
func RemoveChecksums(path string) error {
	b, err := bolt.Open(filepath.Join(path, dbFile), 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		return err
	}
	err = b.Update(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			pairs := map[string][]byte{}
			if err := b.ForEach(func(k, v []byte) error {
				pairs[string(k)] = bytes.Clone(v[:len(v)-checksumBytes])
				return nil
			}); err != nil {
				return err
			}
			for k, v := range pairs {
				if err := b.Put([]byte(k), v); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return errors.Join(err, b.Close())
}

// OnMigration calls fn with each step of the migrations of this process.
func OnMigration(fn func(step string) error) (restore func()) {
	before := onMigration
	onMigration = fn
	return func() { onMigration = before }
}
