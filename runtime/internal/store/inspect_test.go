package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// filledStore creates a closed store with several levels of pages, small and
// large values, trims and unused pages. It returns its folder and file.
func filledStore(t testing.TB) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	db := open(t, dir)
	r := rand.New(rand.NewPCG(1, 2))
	var last *store.Ticket
	for i := range 40 {
		run := fmt.Sprintf("0197a3c4-5b6d-7e8f-9a0b-0000000c%04d", i)
		for seq := uint64(1); seq <= uint64(20+r.IntN(60)); seq++ {
			size := r.IntN(300)
			if seq%17 == 0 {
				size = 10_000 // pages with overflow
			}
			last = db.Enqueue(store.Batch{
				Appends: []store.Append{{Run: run, Seq: seq, Record: make([]byte, size)}},
				Puts:    []store.Put{{Bucket: "pairs", Key: fmt.Appendf(nil, "%s/%d", run, seq), Value: []byte("value")}},
				Lazy:    seq%5 != 0,
			})
		}
		if i%4 == 0 {
			db.Enqueue(store.Batch{Trims: []store.Trim{{Run: run, From: 2, To: 15}}})
		}
	}
	for i := range 3 {
		last = db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: fmt.Sprintf("small%d", i), Key: []byte("k"), Value: []byte("v")}}})
	}
	wait(t, last)
	closeStore(t, db)
	return dir, filepath.Join(dir, "store.db")
}

// In a sound file, a walk finds the same pairs as bbolt.
func TestInspectMatchesBbolt(t *testing.T) {
	_, file := filledStore(t)
	walked, lost, err := store.Walk(file)
	if err != nil || len(lost) > 0 {
		t.Fatalf("lost %v, %v", lost, err)
	}
	want, err := store.BoltPairs(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, walked); d != "" {
		t.Errorf("the walk differs from bbolt (-bbolt +walk):\n%s", d)
	}
	if len(want) < 1000 {
		t.Errorf("only %d pairs: the file is too small for this test", len(want))
	}
	found, err := store.InspectFile(file)
	if err != nil || found.Damaged != 0 || found.OneMeta || found.Pairs != int64(len(want)) || found.Used <= 0 || found.Used > found.Bytes {
		t.Errorf("%+v, %v", found, err)
	}
}

// damage changes some bytes of a file at random and describes the change.
func damage(r *rand.Rand, b []byte) (string, []byte) {
	at := r.IntN(len(b))
	switch r.IntN(5) {
	case 0:
		b[at] ^= 1 << r.IntN(8)
		return fmt.Sprintf("bit in byte %d", at), b
	case 1:
		return fmt.Sprintf("truncated at %d", at), b[:at]
	case 2:
		at &^= 4095
		clear(b[at:min(at+4096*(1+r.IntN(3)), len(b))])
		return fmt.Sprintf("zeros from %d", at), b
	case 3: // in the header or the first elements of a page
		at = at&^4095 + r.IntN(64)
		b[min(at, len(b)-1)] = byte(r.IntN(256))
		return fmt.Sprintf("byte %d", at), b
	default: // a page in the position of another
		from := r.IntN(len(b)) &^ 4095
		at &^= 4095
		copy(b[at:min(at+4096, len(b))], b[from:])
		return fmt.Sprintf("page at %d is the one of %d", at, from), b
	}
}

// No damage crashes Inspect. If Inspect reports a file as sound, bbolt must be
// able to read all of it; otherwise it would crash this test.
func TestInspectSurvivesDamage(t *testing.T) {
	_, file := filledStore(t)
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rounds := 600
	if testing.Short() {
		rounds = 150
	}
	r := rand.New(rand.NewPCG(3, uint64(rounds)))
	dir := t.TempDir()
	bad := filepath.Join(dir, "store.db")
	var damaged, harmless int
	for n := range rounds {
		what, b := damage(r, append([]byte(nil), sound...))
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := store.Inspect(dir)
		if err != nil {
			t.Fatalf("round %d, %s: %v", n, what, err)
		}
		if found.Damaged > 0 {
			damaged++
			if e := found.Err(bad); !errors.Is(e, store.ErrDamaged) || len(found.Places) == 0 {
				t.Fatalf("round %d, %s: %v", n, what, e)
			}
			continue
		}
		harmless++
		if len(b) > 0 {
			if err := store.Verify(dir); err != nil {
				t.Errorf("round %d, %s: sound, but bbolt returns %v", n, what, err)
			}
		}
	}
	t.Logf("%d damaged, %d harmless", damaged, harmless)
	if damaged == 0 || harmless == 0 {
		t.Error("want both damaged and harmless changes")
	}
}

func FuzzPages(f *testing.F) {
	_, file := filledStore(f)
	sound, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte{1})
	f.Add(uint32(4096*5+10), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add(uint32(8192), sound[4096:8192])
	f.Fuzz(func(t *testing.T, at uint32, with []byte) {
		b := append([]byte(nil), sound...)
		copy(b[int(at)%len(b):], with)
		found := store.WalkBytes(b)
		if found.Pairs > int64(len(b)) {
			t.Errorf("%d pairs in %d bytes", found.Pairs, len(b))
		}
	})
}

// Open refuses a damaged store after an unclean shutdown and does not change
// it.
func TestOpenRefusesDamage(t *testing.T) {
	for name, hurt := range map[string]func([]byte) []byte{
		"pages of zeros": func(b []byte) []byte { clear(b[4096*8 : 4096*60]); return b },
		"truncated":      func(b []byte) []byte { return b[:len(b)/2] },
		"no database":    func([]byte) []byte { return []byte("this is not a database, it is a letter") },
		"meta pages":     func(b []byte) []byte { clear(b[:8192]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir, file := filledStore(t)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b = hurt(b)
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "store.open"), []byte("1 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = store.Open(t.Context(), dir, store.Options{})
			var damaged *store.DamagedError
			if !errors.As(err, &damaged) || damaged.Path != file || damaged.Count == 0 || len(damaged.Places) == 0 {
				t.Fatalf("open: %v", err)
			}
			if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, b) {
				t.Error("the damaged file was changed")
			}
		})
	}
}

// A page that claims more overflow pages than its elements fill is damaged, loses
// none of its pairs, and does not decide how much memory is used. bbolt would
// free the pages behind it.
func TestInspectFalseOverflow(t *testing.T) {
	dir, file := filledStore(t)
	sound := readFile(t, file)
	before, _, err := store.Walk(file)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for at := 2 * 4096; at+4096 <= len(sound); at += 4096 {
		b := bytes.Clone(sound)
		b[at+14] |= 1 // 65,536 more overflow pages than there are
		writeFile(t, dir, "store.db", b)
		found, err := store.Inspect(dir)
		if err != nil {
			t.Fatal(err)
		}
		if found.Damaged == 0 {
			continue // a free page
		}
		after, _, err := store.Walk(file)
		if err != nil {
			t.Fatal(err)
		}
		if found.Damaged == 1 && strings.Contains(found.Places[0], "overflow pages") {
			tried++
			if len(after) != len(before) {
				t.Errorf("page %d: %d pairs of %d are left", at/4096, len(after), len(before))
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d pages in use", tried)
	}
}

// A stored list of free pages must not name pages in use: bbolt would overwrite
// them.
func TestInspectListOfFreePages(t *testing.T) {
	dir, file := filledStore(t)
	db := open(t, dir)
	wait(t, db.Enqueue(store.Batch{Trims: []store.Trim{{Run: "0197a3c4-5b6d-7e8f-9a0b-0000000c0001", To: store.All}}})) // leaves free pages
	closeStore(t, db)
	if err := store.StoreFreePages(file); err != nil {
		t.Fatal(err)
	}
	if found, err := store.Inspect(dir); err != nil || found.Damaged != 0 {
		t.Fatalf("a sound list: %+v, %v", found, err)
	}
	sound := readFile(t, file)
	list := 4096 * int(newestMeta(sound, 32))
	if n := binary.NativeEndian.Uint16(sound[list+10:]); n < 2 || n == 0xffff {
		t.Fatalf("%d free pages", n)
	}
	for want, hurt := range map[string]func(b []byte){
		"listed as free":                func(b []byte) { binary.NativeEndian.PutUint64(b[16:], newestMeta(sound, 16)) },
		"as free twice":                 func(b []byte) { copy(b[16:24], b[24:32]) },
		"outside of the pages":          func(b []byte) { binary.NativeEndian.PutUint64(b[16:], 1<<40) },
		"more than fit in it":           func(b []byte) { binary.NativeEndian.PutUint16(b[10:], 0xfffe) },
		"is not a list of free pages":   func(b []byte) { binary.NativeEndian.PutUint16(b[8:], 2) },
		"free pages, more than fit in ": func(b []byte) { b[10], b[11], b[23] = 0xff, 0xff, 0xff },
	} {
		b := bytes.Clone(sound)
		hurt(b[list:])
		writeFile(t, dir, "store.db", b)
		found, err := store.Inspect(dir)
		if err != nil || found.Damaged == 0 || !strings.Contains(found.Places[0], want) {
			t.Errorf("want %q: %+v, %v", want, found, err)
		}
	}
}

// newestMeta returns a number of the newer meta page: its root page is at 16, its
// list of free pages at 32.
func newestMeta(b []byte, at int) uint64 {
	meta := b[16:]
	if binary.NativeEndian.Uint64(b[4096+16+48:]) > binary.NativeEndian.Uint64(b[16+48:]) {
		meta = b[4096+16:]
	}
	return binary.NativeEndian.Uint64(meta[at:])
}

// An old version of a meta page is as good as an unreadable one.
func TestInspectOldMetaPage(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	file := filepath.Join(dir, "store.db")
	wait(t, db.Enqueue(record(1)))
	old := readFile(t, file)
	for seq := uint64(2); seq < 5; seq++ {
		wait(t, db.Enqueue(record(seq)))
	}
	closeStore(t, db)
	now := readFile(t, file)
	for page := range 2 {
		b := bytes.Clone(now)
		copy(b[4096*page:], old[4096*page:4096*(page+1)])
		writeFile(t, dir, "store.db", b)
		if found, err := store.Inspect(dir); err != nil || found.Damaged != 0 || !found.OneMeta {
			t.Errorf("meta page %d: %+v, %v", page, found, err)
		}
	}
	writeFile(t, dir, "store.db", now)
	if found, err := store.Inspect(dir); err != nil || found.Damaged != 0 || found.OneMeta {
		t.Errorf("as it was: %+v, %v", found, err)
	}
}

func readFile(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A start ends with its context also while the file is read, and the next one finds the same store, without a holder
// and without the flag of one that crashed.
func TestOpenEndsWithItsContext(t *testing.T) {
	dir, file := filledStore(t)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if db, err := store.Open(ctx, dir, store.Options{CompactAbove: 1}); !errors.Is(err, stopped) {
		t.Errorf("opened %v, %v; want the cause of the end", db != nil, err)
	}
	if _, err := store.Compact(ctx, dir, store.Options{}); !errors.Is(err, stopped) {
		t.Errorf("compact: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, %v", err)
	}
	if db := open(t, dir); db.Unclean() {
		t.Error("the store was left as by a crash")
	} else {
		closeStore(t, db)
	}
}
