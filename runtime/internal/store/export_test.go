package store

import (
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// SetAfterCommit makes every commit that worked look failed while fn returns
// an error. Not for use while a commit is under way.
func (db *DB) SetAfterCommit(fn func() error) { db.afterCommit = fn }

// CrashCopy writes the committed state to another state folder: what a crash
// at this moment would leave. Blobs are not copied.
func (db *DB) CrashCopy(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return db.bolt.View(func(tx *bolt.Tx) error {
		return tx.CopyFile(filepath.Join(path, dbFile), 0o600)
	})
}
