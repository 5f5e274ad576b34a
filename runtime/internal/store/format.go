package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Format is the format of the stores and state folders that this program writes.
// It reads all formats up to this one. A change that a program of an earlier
// version would misread needs the next number, a function in migrations, and a
// fixture of the format before, see host/testdata/state.
//
// The number is in two places. The table of the store's metadata has it under
// formatKey, written in the transaction of the migration. The file [FormatFile] in
// the state folder has it for programs that cannot read the store at all. The form
// of both never changes.
const Format = 2

// FormatFile is the name of the file in the state folder with its format.
const FormatFile = "format.json"

var (
	formatKey = []byte("format") // format of the store, 8 bytes; missing in format 0
	writerKey = []byte("writer") // version of the program that gave the store this format
)

// migrations[n] changes a store of format n to format n+1. It runs in one
// transaction with the change of the number, so a crash leaves one of the two
// formats. Checksums are those of appendWithChecksum.
var migrations = [Format]func(tx *bolt.Tx) error{
	0: func(*bolt.Tx) error { return nil }, // format 1 adds the number
	1: func(*bolt.Tx) error { return nil }, // format 2 has workspaces relative to the project; absolute ones stay
}

// onMigration is called with the name of each step of a migration. Tests end the
// process or fail the step there.
var onMigration = func(string) error { return nil }

// ErrFormat is matched by [FormatError].
var ErrFormat = errors.New("format of another version")

// A FormatError reports a store or state folder that was written in a format which
// this program does not read. It is not damage, and nothing was changed. It wraps
// an [*abi.Error] with a hint for the operator.
type FormatError struct {
	Path   string // the database file, or the state folder
	Format int    // -1 for values without checksums, which no numbered format has
	Writer string // version of the program that wrote it, "" if unknown
	Begun  bool   // the migration to Format has begun and not ended
	Unread error  // why the file with the format of the state folder Path cannot be read
}

func (e *FormatError) Error() string {
	by := "a newer version of sentinel"
	if e.Writer != "" {
		by = "sentinel " + e.Writer
	}
	switch {
	case e.Unread != nil:
		return fmt.Sprintf("the format of the state folder %s is not known: %s: %v", e.Path, FormatFile, e.Unread)
	case e.Format < 0:
		return fmt.Sprintf("the store %s was written by a version of sentinel before 0.1, without checksums; this program cannot read it", e.Path)
	case e.Begun:
		return fmt.Sprintf("%s began to migrate %s to format %d and did not finish; this program reads formats up to %d", by, e.Path, e.Format, Format)
	}
	return fmt.Sprintf("%s has format %d, written by %s; this program reads formats up to %d", e.Path, e.Format, by, Format)
}

// Is reports whether target is [ErrFormat].
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// Unwrap returns the error that callers outside of the engine see.
func (e *FormatError) Unwrap() error {
	hint := "nothing was changed; use that version or a newer one, or restore a backup of this version into another folder (host/BACKUP.md)"
	switch {
	case e.Unread != nil:
		hint = fmt.Sprintf("nothing was changed; if no newer version wrote the state folder, delete %s, which is written again: the store has its format too", filepath.Join(e.Path, FormatFile))
	case e.Format < 0:
		hint = "nothing was changed; use the version that wrote it, or move the state folder away to begin with an empty one (host/BACKUP.md)"
	}
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: e.Error(), Hint: hint}
}

// A MigrationError reports that a store could not be migrated. The store is as it
// was before.
type MigrationError struct {
	Path     string // the database file
	From     int    // its format
	Snapshot string // path of the copy that was made before, "" if it could not be made
	Err      error
}

func (e *MigrationError) Error() string {
	return fmt.Sprintf("migrate the store %s from format %d to %d: %v; the store is unchanged", e.Path, e.From, Format, e.Err)
}

// Unwrap returns the cause.
func (e *MigrationError) Unwrap() error { return e.Err }

// A Migration describes a migration that [Open] made.
type Migration struct {
	From, To int
	Snapshot string // path of the store snapshot from before
}

// A folderFormat is the content of [FormatFile].
type folderFormat struct {
	Format  int    `json:"format"`
	Version string `json:"version"`        // of the program that wrote the file
	From    *int   `json:"from,omitempty"` // the migration from this format has begun and not ended
}

// readFolderFormat returns the format of a state folder. A missing file is format 0: the store has the number
// too. What has no number from 1 on is a [*FormatError], since a newer version may have written it.
func readFolderFormat(path string) (folderFormat, error) {
	var f folderFormat
	text, err := regularfile.Read(filepath.Join(path, FormatFile), 64<<10)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err == nil:
		err = json.Unmarshal(text, &f)
	}
	if err == nil && f.Format < 1 {
		err = errors.New(`"format" is not a whole number from 1 on`)
	}
	if err != nil {
		return folderFormat{}, &FormatError{Path: path, Unread: err}
	}
	return f, nil
}

// checkFolderFormat returns a [*FormatError] for a state folder of a newer format, or of one that is not known.
func checkFolderFormat(path string) error {
	f, err := readFolderFormat(path)
	if f.Format > Format {
		return &FormatError{Path: path, Format: f.Format, Writer: f.Version, Begun: f.From != nil}
	}
	return err
}

// write replaces the file of a state folder.
func (f folderFormat) write(path string) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return replaceFlag(filepath.Join(path, FormatFile), append(text, '\n'))
}

// loadFormat reads the format of the store.
func (db *DB) loadFormat(metadata *bolt.Bucket) error {
	n, err := db.readMetadata(metadata, formatKey)
	if err != nil {
		return err
	}
	db.format = int(n)
	return nil
}

// putFormat writes the format of the store and the version that wrote it.
func (db *DB) putFormat(metadata *bolt.Bucket, n int, version string) error {
	if err := db.putMetadata(metadata, formatKey, uint64(n)); err != nil {
		return err
	}
	return metadata.Put(writerKey, db.withChecksum(storeBucket, writerKey, []byte(version)))
}

// migrate brings the store to [Format]: it takes a store snapshot, marks the state
// folder, and changes one format after the other, each in a transaction. A process
// that is killed in between is continued by the next one of this version or a newer
// one; an older one refuses the folder.
func (db *DB) migrate(o Options) error {
	if db.format == Format {
		return nil
	}
	file := filepath.Join(db.path, dbFile)
	failed := &MigrationError{Path: file, From: db.format}
	done := Migration{From: db.format, To: Format}
	begin := func() error {
		if err := onMigration("snapshot"); err != nil {
			return err
		}
		s, err := db.Snapshot(context.Background(), SnapshotOptions{Why: "migration"})
		if err != nil {
			return err
		}
		done.Snapshot, failed.Snapshot = s.Path, s.Path
		o.Logger.Info("copied the store before its migration", "snapshot", s.Path, "from", db.format, "to", Format)
		return onMigration("mark")
	}
	if err := begin(); err != nil {
		failed.Err = err
		return failed
	}
	before, err := readFolderFormat(db.path)
	if err != nil {
		failed.Err = err
		return failed
	}
	if err := (folderFormat{Format: Format, Version: o.Version, From: &done.From}).write(db.path); err != nil {
		failed.Err = err
		return failed
	}
	for db.format < Format {
		next := db.format + 1
		err := db.try(db.examine, func() error {
			return db.bolt.Update(func(tx *bolt.Tx) error {
				if err := migrations[next-1](tx); err != nil {
					return err
				}
				if err := db.putFormat(tx.Bucket([]byte(storeBucket)), next, o.Version); err != nil {
					return err
				}
				return onMigration(fmt.Sprintf("commit %d", next))
			})
		})
		if err != nil {
			failed.From, failed.Err = db.format, err
			if db.format == done.From { // else the mark is right
				err = db.unmark(before)
			}
			return errors.Join(failed, err)
		}
		db.format = next
	}
	if err := onMigration("finish"); err != nil {
		failed.Err = err
		return failed
	}
	o.Logger.Warn("the store was migrated", "from", done.From, "to", Format, "snapshot", done.Snapshot)
	db.migration = &done
	return db.try(db.examine, func() error { return db.bolt.View(db.loadMetadata) })
}

// unmark gives a state folder the format file that it had before a migration.
func (db *DB) unmark(before folderFormat) error {
	if before.Version != "" {
		return before.write(db.path)
	}
	err := os.Remove(filepath.Join(db.path, FormatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// finishFormat writes the format file of a state folder whose store has [Format].
// On a full disk the next process writes it.
func (db *DB) finishFormat(o Options) error {
	f, err := readFolderFormat(db.path)
	if err != nil || f.Format == Format && f.From == nil {
		return err
	}
	err = folderFormat{Format: Format, Version: o.Version}.write(db.path)
	if IsFull(err) {
		o.Logger.Warn("the format of the state folder cannot be written; the next start tries again", "error", err)
		return nil
	}
	return err
}

// Migration returns what [Open] migrated, nil if the store had its format already.
func (db *DB) Migration() *Migration { return db.migration }

// checkFormat returns a [*FormatError] if the file has a format that this program
// does not read. Damage in a file of a newer format is not judged: it may be part
// of the format.
func (i *Inspection) checkFormat(file string) error {
	switch {
	case i.Format > Format:
		return &FormatError{Path: "the store " + file, Format: i.Format, Writer: i.Writer}
	case i.Pairs == 0 && i.noSums > 1 && i.otherDamage == 0:
		return &FormatError{Path: file, Format: -1}
	}
	return nil
}

// readFormat takes the format from a pair of the metadata.
func (i *Inspection) readFormat(key, value []byte) {
	switch {
	case string(key) == string(formatKey) && len(value) == 8:
		i.Format = int(binary.BigEndian.Uint64(value) & (1<<31 - 1))
	case string(key) == string(writerKey):
		i.Writer = string(value)
	}
}
