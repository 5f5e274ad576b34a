package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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
			_, err = store.Open(dir, store.Options{})
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

// The second check runs after an unclean shutdown only. Only damage that it
// finds keeps the store closed.
func TestOpenSecondCheck(t *testing.T) {
	dir, _ := filledStore(t)
	calls := 0
	result := errors.New("cannot start a child")
	opt := store.Options{Check: func(path string) error {
		if path != dir {
			t.Errorf("calls about %q", path)
		}
		calls++
		return result
	}}
	reopen := func() error {
		db, err := store.Open(dir, opt)
		if err == nil {
			closeStore(t, db)
		}
		return err
	}
	if err := reopen(); err != nil || calls != 0 {
		t.Fatalf("after a clean close: calls %d times, %v", calls, err)
	}
	unclean := func() {
		if err := os.WriteFile(filepath.Join(dir, "store.open"), []byte("1 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unclean()
	if err := reopen(); err != nil || calls != 1 {
		t.Fatalf("after an unclean end: calls %d times, %v", calls, err)
	}
	unclean()
	result = fmt.Errorf("child died: %w", &store.DamagedError{Path: "x", Count: 1})
	if err := reopen(); !errors.Is(err, store.ErrDamaged) || calls != 2 {
		t.Fatalf("calls %d times, %v", calls, err)
	}
}
