package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// overwritePages writes to the file of an open store: hurt gets all pages from
// the third on.
func overwritePages(t *testing.T, file string, hurt func(b []byte)) {
	t.Helper()
	b := readFile(t, file)
	hurt(b[2*4096:])
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// damages are what can happen to the file of an open store.
var damages = map[string]func(t *testing.T, file string){
	"zeros":   func(t *testing.T, file string) { overwritePages(t, file, func(b []byte) { clear(b) }) },
	"numbers": func(t *testing.T, file string) { overwritePages(t, file, func(b []byte) { copy(b, b[4096:]) }) },
	"lengths": func(t *testing.T, file string) {
		overwritePages(t, file, func(b []byte) {
			for at := 0; at+4096 <= len(b); at += 4096 {
				for i := at + 16 + 4; i < at+80; i++ {
					b[i] |= 0x70
				}
			}
		})
	},
	"truncated": func(t *testing.T, file string) {
		if err := os.Truncate(file, 3*4096); err != nil {
			t.Fatal(err)
		}
	},
	"empty": func(t *testing.T, file string) {
		if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
	},
	"meta pages": func(t *testing.T, file string) {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(make([]byte, 8192), 0); err != nil {
			t.Fatal(err)
		}
	},
}

// TestForgedMeta: a meta page with a right checksum and impossible fields is damage. The database
// library would take it, and end the program or read without end.
func TestForgedMeta(t *testing.T) {
	order := binary.NativeEndian
	for name, forge := range map[string]func(body []byte){
		"page size": func(body []byte) { order.PutUint32(body[8:], 0x100) },
		"end":       func(body []byte) { order.PutUint64(body[40:], 1<<40) },
	} {
		for _, page := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s of page %d", name, page), func(t *testing.T) {
				dir, file := filledStore(t)
				b := readFile(t, file)
				body := b[page*4096+16 : page*4096+16+64]
				forge(body)
				order.PutUint64(body[48:], order.Uint64(body[48:])+2) // the newer one
				sum := fnv.New64a()
				sum.Write(body[:56])
				order.PutUint64(body[56:], sum.Sum64())
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
				db, err := store.Open(t.Context(), dir, store.Options{})
				if err == nil || !strings.Contains(err.Error(), "forged") {
					t.Errorf("opened: %v", err)
				}
				if db != nil {
					_ = db.Close()
				}
			})
		}
	}
}

// uses are what an open store is asked for, each of which meets the damage first
// in one of the subtests.
var uses = map[string]func(db *store.DB) error{
	"get": func(db *store.DB) error { _, _, err := db.Get("pairs", []byte(childRun(0)+"/1")); return err },
	"scan": func(db *store.DB) error {
		return db.Scan("pairs", nil, nil, false, func(_, _ []byte) bool { return true })
	},
	"reverse scan": func(db *store.DB) error {
		return db.Scan("pairs", nil, nil, true, func(_, _ []byte) bool { return true })
	},
	"journal": func(db *store.DB) error {
		return db.Journal("0197a3c4-5b6d-7e8f-9a0b-0000000c0002", 0, func(uint64, []byte) error { return nil })
	},
	"last record": func(db *store.DB) error {
		_, _, err := db.LastSeq("0197a3c4-5b6d-7e8f-9a0b-0000000c0002")
		return err
	},
	"snapshot": func(db *store.DB) error {
		_, err := db.Snapshot(context.Background(), store.SnapshotOptions{})
		return err
	},
	"commit": func(db *store.DB) error {
		return committed(db, db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "pairs", Key: []byte("new"), Value: []byte("v")}}}))
	},
	"trim": func(db *store.DB) error {
		return committed(db, db.Enqueue(store.Batch{Trims: []store.Trim{{Run: "0197a3c4-5b6d-7e8f-9a0b-0000000c0002", To: store.All}}}))
	},
}

// committed waits until a batch is committed or its commit has failed.
func committed(db *store.DB, ticket *store.Ticket) error {
	for db.Health() == nil {
		select {
		case <-ticket.Done():
			return ticket.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return db.Health()
}

// Damage under an open store is an error of what meets it, whatever that is: the
// file, the page and the way to repair. No commit follows, and Close returns.
func TestDamageWhileOpen(t *testing.T) {
	for what, hurt := range damages {
		for name, use := range uses {
			t.Run(what+"/"+name, func(t *testing.T) {
				dir, file := filledStore(t)
				db := open(t, dir)
				hurt(t, file)
				met := use(db)
				var value *store.ValueError // the other kind: one value, everything else can be read and written
				if met == nil && what != "numbers" || met != nil && !errors.Is(met, store.ErrDamaged) && !errors.As(met, &value) {
					t.Errorf("%v", met)
				}
				var bad *store.DamagedError
				if errors.As(met, &bad) {
					if e := abi.As(met); bad.Path != file || bad.Count == 0 || e == nil || !strings.Contains(e.Hint, "sentinel recover") {
						t.Errorf("%v, %+v", met, e)
					}
					if name != "snapshot" {
						checkBroken(t, db)
					}
				}
				for other, use := range uses {
					if err := use(db); err != nil && !errors.Is(err, store.ErrDamaged) {
						t.Errorf("then %s: %v", other, err)
					}
				}
				begin := time.Now()
				if err := db.Close(); db.Health() != nil && !errors.Is(err, store.ErrDamaged) {
					t.Errorf("close: %v", err)
				}
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("close took %s", took)
				}
			})
		}
	}
}

// checkBroken checks that a store which has met damage is read-only, and that its
// next owner learns of it.
func checkBroken(t *testing.T, db *store.DB) {
	t.Helper()
	var stalled *store.StalledError
	if err := db.Health(); !errors.As(err, &stalled) || !errors.Is(err, store.ErrDamaged) {
		t.Errorf("health: %v", err)
	}
	ticket := db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "pairs", Key: []byte("later"), Value: []byte("v")}}})
	ticket.OnDone(func(err error) {
		if !errors.Is(err, store.ErrClosed) || !errors.Is(err, store.ErrDamaged) {
			t.Errorf("a batch after the damage: %v", err)
		}
	})
}

// bbolt reads all pages when a commit fails, on a goroutine that nothing can
// recover. In a damaged file that must not happen.
func TestDamageWhenACommitFails(t *testing.T) {
	dir, file := filledStore(t)
	db, err := store.Open(t.Context(), dir, store.Options{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	big := store.Batch{Puts: []store.Put{{Bucket: "small0", Key: []byte("big"), Value: make([]byte, 4<<20)}}}
	ticket := db.Enqueue(big)
	if err := committed(db, ticket); err == nil || errors.Is(err, store.ErrDamaged) {
		t.Fatalf("the commit of a batch that is too large: %v", err)
	}
	// The pages of the journal are not needed by the commit.
	overwritePages(t, file, func(b []byte) {
		for at := 0; at+4096 <= len(b); at += 4096 {
			if bytes.Contains(b[at:at+4096], []byte{0x01, 0x97, 0xa3, 0xc4, 0x5b, 0x6d}) {
				clear(b[at : at+4096])
			}
		}
	})
	for !errors.Is(db.Health(), store.ErrDamaged) {
		time.Sleep(time.Millisecond) // until the next attempt
	}
	if err := db.Close(); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("close: %v", err)
	}
	if err := ticket.Err(); !errors.Is(err, store.ErrClosed) {
		t.Errorf("the batch: %v", err)
	}
}

// The loss of the newest meta page must not restore the commit before.
func TestNewestMetaPageWhileOpen(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	for seq := uint64(1); seq <= 5; seq++ {
		wait(t, db.Enqueue(record(seq)))
		if seq < 5 {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, "store.db"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		newest := int64(0)
		if newestMeta(readFile(t, f.Name()), 48)%2 == 1 {
			newest = 4096
		}
		if _, err := f.WriteAt(make([]byte, 80), newest); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := db.LastSeq(run); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("read: %v", err)
	}
	ticket := db.Enqueue(record(6))
	if err := db.Close(); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("close: %v", err)
	}
	if err := ticket.Err(); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("commit: %v", err)
	}
}

// A panic that damage does not explain is a mistake of this program. It must not
// look like damage.
func TestPanicWithoutDamage(t *testing.T) {
	_, file := filledStore(t)
	defer func() {
		if p := recover(); fmt.Sprint(p) != "a mistake" {
			t.Errorf("panic %v", p)
		}
	}()
	t.Errorf("returned %v", store.Explain("a mistake", file))
}

// Damage that comes during a compaction is an error of it.
func TestDamageWhileCompacting(t *testing.T) {
	for what, hurt := range damages {
		if what == "meta pages" || what == "empty" {
			continue // a lock of bbolt stays taken; an open store checks these before
		}
		_, file := filledStore(t)
		err := store.CopyWhile(file, file+".copy", func() { hurt(t, file) })
		if !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
