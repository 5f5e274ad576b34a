package codeindex

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// version is that of the database: of its tables, and of how words are split.
const version = 1

// Limits of the databases in a folder, which are of different workspaces. Those used
// last are kept.
const (
	maxDatabases = 64
	maxUnused    = 30 * 24 * time.Hour
)

// Options describe an index. Root is required.
type Options struct {
	Root *os.Root // the workspace; the caller closes it
	Dir  string   // folder of the databases; default: in memory, for the time of the Index
	Git  string   // path of git; default: the walk of package filewalk lists the files
	// Skip reports whether to leave out a file, or a folder with all that is in it.
	// Default: nothing.
	Skip func(name string, folder bool) bool
	// Accept reports whether the content of a file is indexed: text without secrets. It
	// is called in several goroutines. Default: every file.
	Accept func(name string, content []byte) bool
	// Policy identifies what Skip and Accept decide: with another one, another database
	// is used. With the same, Skip is not asked again about files that are indexed.
	Policy string
	Logger *slog.Logger // default: no log
}

// An Index is an open index of a workspace. The caller closes it.
type Index struct {
	opt  Options
	dir  string // of the workspace
	path string // of the database, "" in memory
	db   *sql.DB
	conn *sql.Conn
	snap *snapshot // nil until it is read
	gen  int64     // of snap
	// fresh is set once the index was compared with the workspace.
	fresh bool
}

// Open opens the index of a workspace.
func Open(ctx context.Context, opt Options) (*Index, error) {
	if opt.Skip == nil {
		opt.Skip = func(string, bool) bool { return false }
	}
	if opt.Accept == nil {
		opt.Accept = func(string, []byte) bool { return true }
	}
	opt.Logger = cmp.Or(opt.Logger, slog.New(slog.DiscardHandler))
	x := &Index{opt: opt, dir: opt.Root.Name()}
	if opt.Dir != "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", version, x.dir, opt.Policy))
		x.path = filepath.Join(opt.Dir, hex.EncodeToString(sum[:12])+".db")
	}
	err := x.recovered(ctx, func() error {
		if x.db != nil {
			return nil // opened again
		}
		return x.open(ctx)
	})
	if err != nil {
		_ = x.Close() // the first error is the cause
		return nil, fmt.Errorf("open the code index of %q: %w", x.dir, err)
	}
	return x, nil
}

// Close closes the database. The index stays.
func (x *Index) Close() error {
	if x.db == nil {
		return nil
	}
	err := errors.Join(x.conn.Close(), x.db.Close())
	x.db, x.conn = nil, nil
	return err
}

// tables are made by the first transaction, so other processes see all or none.
var tables = []string{
	`CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 0), generation INTEGER NOT NULL, files BLOB NOT NULL)`,
	// Only which files have a word is stored, so a file has each word once. See RATIONALE.md.
	`CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_'")`,
	fmt.Sprintf(`PRAGMA user_version = %d`, version),
}

// open opens the database and makes its tables if it is new.
func (x *Index) open(ctx context.Context) error {
	source := ":memory:"
	if x.path != "" {
		if err := x.prepare(); err != nil {
			return err
		}
		// A crash of the machine may lose the last transactions, but damages nothing.
		source = "file:" + (&url.URL{Path: filepath.ToSlash(x.path)}).EscapedPath() +
			"?_pragma=busy_timeout(100)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)"
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	conn, err := x.connect(ctx, db)
	if err != nil {
		_ = db.Close() // the first error is the cause
		return err
	}
	x.db, x.conn = db, conn
	var found int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil || found == version {
		return err
	}
	return x.transaction(ctx, func() error {
		if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil || found == version {
			return err // another process has made them since
		}
		if found != 0 {
			return errDamaged // the name of the file has the version
		}
		for _, text := range tables {
			if _, err := conn.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return x.store(ctx, &snapshot{next: 1}, 0)
	})
}

// connect opens the connection, and waits while another process begins to use the
// database.
func (x *Index) connect(ctx context.Context, db *sql.DB) (conn *sql.Conn, err error) {
	err = untilFree(ctx, func() error {
		conn, err = db.Conn(ctx)
		return err
	})
	return conn, err
}

// prepare makes the folder of the databases, notes that this one is used and removes
// those that were not for long.
func (x *Index) prepare() error {
	now := time.Now()
	if os.Chtimes(x.path, now, now) == nil {
		return nil
	}
	dir := filepath.Dir(x.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var others []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == ".db" {
			others = append(others, info)
		}
	}
	slices.SortFunc(others, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for i, info := range others {
		if i >= maxDatabases-1 || now.Sub(info.ModTime()) > maxUnused {
			remove(filepath.Join(dir, info.Name()))
		}
	}
	f, err := regularfile.OpenFile(x.path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would make it readable for all
	if err != nil {
		return err
	}
	return f.Close()
}

// remove removes a database. What cannot be removed is found again when it is opened.
func remove(path string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		_ = os.Remove(path + suffix)
	}
}

// recovered calls fn. If the database is damaged it is removed, if it cannot be
// written the index goes to memory; then fn is called once more.
func (x *Index) recovered(ctx context.Context, fn func() error) error {
	err := fn()
	for range 2 { // a new database, then memory
		damaged := isDamage(err)
		if err == nil || x.path == "" || ctx.Err() != nil || !damaged && !isUnwritable(err) {
			return err
		}
		_ = x.Close() // it is not used any more
		x.snap, x.fresh = nil, false
		if damaged {
			x.opt.Logger.Warn("the code index is damaged and is built again", "workspace", x.dir, "database", x.path, "error", err)
			remove(x.path)
		} else {
			x.opt.Logger.Warn("the code index cannot be stored and is built in memory", "workspace", x.dir, "database", x.path, "error", err)
			x.path = ""
		}
		if err = x.open(ctx); err == nil {
			err = fn()
		}
	}
	return err
}

// code returns SQLite's code of an error, 0 if it is of something else.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// isDamage reports whether a database cannot be used any more. A query without a table
// is an error of the kind SQLITE_ERROR.
func isDamage(err error) bool {
	c := code(err)
	return errors.Is(err, errDamaged) || c == sqlite3.SQLITE_IOERR_SHORT_READ ||
		slices.Contains([]int{sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_CONSTRAINT}, c&0xff)
}

// isUnwritable reports whether a folder, disk or file does not take a database.
func isUnwritable(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) ||
		slices.Contains([]int{sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOLFS}, code(err)&0xff)
}

// transaction calls fn in a transaction that no other process can write beside.
func (x *Index) transaction(ctx context.Context, fn func() error) error {
	err := untilFree(ctx, func() error {
		_, err := x.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		return err
	}
	if err = fn(); err == nil {
		_, err = x.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// Without a transaction, such as after a full disk, it fails and changes nothing.
		_, _ = x.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

// untilFree repeats fn while another process uses the database. Each attempt waits by
// itself, so that ctx ends the waiting soon.
func untilFree(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		if errors.Is(err, driver.ErrBadConn) || code(err)&0xff != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the code index is written by another process: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// load reads the snapshot if it is not the one that was read or written last.
func (x *Index) load(ctx context.Context) error {
	var gen int64
	var files []byte
	err := x.conn.QueryRowContext(ctx, "SELECT generation FROM state").Scan(&gen)
	if err == nil && x.snap != nil && gen == x.gen {
		return nil
	}
	if err == nil {
		err = x.conn.QueryRowContext(ctx, "SELECT generation, files FROM state").Scan(&gen, &files)
	}
	if err != nil && code(err) == 0 && ctx.Err() == nil { // no row, or no values in it
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err != nil {
		return err
	}
	snap, err := decode(files)
	if err == nil {
		x.snap, x.gen = snap, gen
	}
	return err
}

// store writes a snapshot.
func (x *Index) store(ctx context.Context, snap *snapshot, gen int64) error {
	if _, err := x.conn.ExecContext(ctx, "REPLACE INTO state VALUES (0, ?, ?)", gen, snap.encode()); err != nil {
		return err
	}
	x.snap, x.gen = snap, gen
	return nil
}
