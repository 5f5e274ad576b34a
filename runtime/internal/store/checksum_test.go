package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// flip changes one bit in every occurrence of the text in the file.
func flip(t testing.TB, file, text string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := false
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(text))
		if i < 0 {
			break
		}
		at += i + 1
		found = true
		if _, err := f.WriteAt([]byte{b[at] ^ 0x04}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatalf("%q is not in %s", text, file)
	}
}

// damagedDB returns an open store in which one pair and the last record of one
// run are damaged.
func damagedDB(t *testing.T) (db *store.DB, dir string) {
	t.Helper()
	dir = t.TempDir()
	db = open(t, dir)
	t.Cleanup(func() { closeStore(t, db) })
	var batch store.Batch
	for _, key := range []string{"a", "b", "c"} {
		batch.Puts = append(batch.Puts, store.Put{Bucket: "things", Key: []byte(key), Value: []byte("value of " + key)})
	}
	for seq := uint64(1); seq <= 3; seq++ {
		batch.Appends = append(batch.Appends, store.Append{Run: run, Seq: seq, Record: fmt.Appendf(nil, "record %d", seq)})
	}
	wait(t, db.Enqueue(batch))
	// The file is mapped, so the store reads what is written to it here.
	flip(t, filepath.Join(dir, "store.db"), "value of b")
	flip(t, filepath.Join(dir, "store.db"), "record 3")
	return db, dir
}

// checkValueError checks that an error names table, key and the repair command.
func checkValueError(t *testing.T, what string, err error, table, key string) {
	t.Helper()
	var bad *store.ValueError
	if !errors.As(err, &bad) || !errors.Is(err, store.ErrDamaged) || bad.Table != table || bad.Key != key {
		t.Errorf("%s: %v; want a damaged value at table %s key %s", what, err, table, key)
		return
	}
	if e := abi.As(err); e == nil || !strings.Contains(e.Message, table) || !strings.Contains(e.Message, key) || !strings.Contains(e.Hint, "sentinel recover --state") {
		t.Errorf("%s: %+v; want table, key and the command in message and hint", what, e)
	}
}

// Every kind of read returns an error with the place of a damaged value, never
// the value. The values beside it can still be read.
func TestReadDamagedValue(t *testing.T) {
	db, _ := damagedDB(t)
	if bad := db.Damaged(); bad != nil {
		t.Errorf("before any read: %v", bad)
	}
	value, found, err := db.Get("things", []byte("b"))
	checkValueError(t, "get", err, "things", `"b"`)
	if value != nil || found {
		t.Errorf("get returned %q, %t beside the error", value, found)
	}
	if v, found, err := db.Get("things", []byte("a")); string(v) != "value of a" || !found || err != nil {
		t.Errorf("the value beside it: %q, %t, %v", v, found, err)
	}
	for _, reverse := range []bool{false, true} {
		var keys string
		err = db.Scan("things", nil, nil, reverse, func(key, value []byte) bool {
			if string(value) != "value of "+string(key) {
				t.Errorf("scan: %s has %q", key, value)
			}
			keys += string(key)
			return true
		})
		checkValueError(t, "scan", err, "things", `"b"`)
		if len(keys) != 2 {
			t.Errorf("scan visited %q, want the two sound pairs", keys)
		}
	}
	if err := db.Scan("things", nil, nil, false, func([]byte, []byte) bool { return false }); err != nil {
		t.Errorf("a scan that ends before the damage: %v", err)
	}
	last := run + " record 3"
	records := 0
	err = db.Journal(run, 1, func(seq uint64, record []byte) error {
		records++
		if string(record) != fmt.Sprintf("record %d", seq) {
			t.Errorf("journal: %d is %q", seq, record)
		}
		return nil
	})
	checkValueError(t, "journal", err, "journal", last)
	if records != 2 {
		t.Errorf("journal visited %d records, want 2", records)
	}
	_, _, err = db.LastSeq(run)
	checkValueError(t, "last", err, "journal", last)
	if bad := db.Damaged(); bad == nil || bad.Table != "things" {
		t.Errorf("the first damaged value is %v", bad)
	}
}

// A batch whose check needs a damaged value is refused. The writer continues.
func TestCheckDamagedValue(t *testing.T) {
	db, _ := damagedDB(t)
	checked := db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "things", Key: []byte("b"), Value: []byte("x"), Check: func(current []byte, _ bool) error {
		t.Errorf("the check saw %q", current)
		return nil
	}}}})
	checkValueError(t, "check", checked.Wait(t.Context()), "things", `"b"`)
	wait(t, db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "things", Key: []byte("b"), Value: []byte("new")}}}))
	if v, _, err := db.Get("things", []byte("b")); string(v) != "new" || err != nil {
		t.Errorf("overwritten: %q, %v", v, err)
	}
	if err := db.Health(); err != nil {
		t.Errorf("health: %v", err)
	}
}

// The checksum covers table and key: a sound value under another key is damage.
func TestValueUnderWrongKey(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	wait(t, db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "things", Key: []byte("kex"), Value: []byte("value")}}}))
	flip(t, filepath.Join(dir, "store.db"), "kex")
	_, _, err := db.Get("things", []byte("kax"))
	checkValueError(t, "another key", err, "things", `"kax"`)
	closeStore(t, db)
}

// If Inspect reports no damage after a bit flip, all pairs are unchanged.
func TestBitFlipsAreDetected(t *testing.T) {
	_, file := filledStore(t)
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := store.Walk(file)
	if err != nil {
		t.Fatal(err)
	}
	rounds := 200
	if testing.Short() {
		rounds = 60
	}
	r := rand.New(rand.NewPCG(5, 8))
	bad := filepath.Join(t.TempDir(), "store.db")
	damaged := 0
	for n := range rounds {
		b := bytes.Clone(sound)
		at := r.IntN(len(b))
		b[at] ^= 1 << r.IntN(8)
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := store.InspectFile(bad)
		if err != nil {
			t.Fatal(err)
		}
		if found.Damaged > 0 {
			damaged++
			continue
		}
		if found.OneMeta { // the other meta page is a complete state, one commit older
			continue
		}
		got, lost, err := store.Walk(bad)
		if d := cmp.Diff(want, got); d != "" || len(lost) > 0 || err != nil {
			t.Fatalf("round %d: byte %d changed, no damage is reported and the pairs differ, %v (-was +is):\n%s", n, at, err, d)
		}
	}
	t.Logf("%d of %d flips detected, the others hit unused space", damaged, rounds)
	if damaged == 0 {
		t.Error("no flip was detected")
	}
}

// Open reads all of a small store, so it refuses one with a flipped bit. The
// error names table and key.
func TestOpenDetectsBitFlip(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	wait(t, db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "things", Key: []byte("k"), Value: []byte("the value")}}}))
	closeStore(t, db)
	flip(t, filepath.Join(dir, "store.db"), "the value")
	_, err := store.Open(t.Context(), dir, store.Options{})
	var bad *store.DamagedError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), `table "things" key "k"`) {
		t.Errorf("open: %v", err)
	}
}
