package snapshots_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/snapshots"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A fake is a store whose snapshots are only counted.
type fake struct {
	created time.Time

	mu    sync.Mutex
	stats store.Stats
	err   error // of every snapshot
	taken []store.SnapshotOptions
}

func (f *fake) ID() string         { return "id" }
func (f *fake) Created() time.Time { return f.created }

func (f *fake) Stats() store.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

// all returns the snapshots so far.
func (f *fake) all() []store.SnapshotOptions {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.taken)
}

func (f *fake) commit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Commits++
}

func (f *fake) Snapshot(_ context.Context, o store.SnapshotOptions) (store.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken = append(f.taken, o)
	return store.Snapshot{Taken: time.Now(), Why: o.Why}, f.err
}

// A recorder has what a keeper reports.
type recorder struct {
	mu      sync.Mutex
	newest  time.Time
	damaged *abi.Error
	log     strings.Builder
}

func (r *recorder) take(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest = at
}

func (r *recorder) last() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest
}

func open(t *testing.T, f *fake, every time.Duration) (*snapshots.Keeper, *recorder) {
	t.Helper()
	return openKeeping(t, f, every, 0)
}

func openKeeping(t *testing.T, f *fake, every time.Duration, keep int) (*snapshots.Keeper, *recorder) {
	t.Helper()
	r := &recorder{}
	k, err := snapshots.Open(snapshots.Options{
		Dir: t.TempDir(), Store: f, Log: slog.New(slog.NewTextHandler(&r.log, nil)), Every: every, Keep: keep,
		Taken: r.take, Damaged: func(e *abi.Error) { r.damaged = e },
	})
	if err != nil {
		t.Fatal(err)
	}
	return k, r
}

// A snapshot is taken when an hour has passed since the store was created or the
// newest one was taken, if the store has changed.
func TestEveryHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{created: time.Now(), stats: store.Stats{Commits: 1, FileBytes: 1 << 40}}
		k, r := open(t, f, 0)
		k.Start()
		defer k.Stop()
		check := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := len(f.all()); got != want {
				t.Errorf("%d snapshots, want %d", got, want)
			}
		}
		check(59*time.Minute, 0)
		check(3*time.Minute, 1)
		if first := f.all()[0]; time.Since(r.last()) > 3*time.Minute || first.Why != "hourly" || first.Keep != 3 {
			t.Errorf("newest %s, %+v", r.last(), first)
		}
		check(5*time.Hour, 1) // nothing has changed
		f.commit()
		check(2*time.Minute, 2)
		f.commit()
		check(30*time.Minute, 2)
	})
}

// A clock that was set back makes a snapshot due, and a negative interval none.
func TestDue(t *testing.T) {
	for name, tt := range map[string]struct {
		age, every time.Duration
		bytes      int64
		commits    uint64
		want       int
	}{
		"old":           {2 * time.Hour, time.Hour, 1, 1, 1},
		"new":           {time.Minute, time.Hour, 1, 1, 0},
		"not changed":   {2 * time.Hour, time.Hour, 1, 0, 0},
		"in the future": {-2 * time.Hour, time.Hour, 1, 1, 1},
		"never":         {2 * time.Hour, -1, 1, 1, 0},
		"large":         {2 * time.Hour, time.Hour, 1 << 30, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{created: time.Now().Add(-tt.age), stats: store.Stats{Commits: tt.commits, FileBytes: tt.bytes}}
			k, _ := open(t, f, tt.every)
			k.Start()
			k.Stop()
			k.Stop()
			if k.TakeLast(t.Context()); len(f.taken) != tt.want {
				t.Errorf("%d snapshots, want %d", len(f.taken), tt.want)
			}
		})
	}
}

// A snapshot that fails is tried again every minute. A full disk is logged once an
// interval.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{created: time.Now(), stats: store.Stats{Commits: 1}, err: store.ErrNoSpace}
		k, r := open(t, f, time.Hour)
		k.Start()
		time.Sleep(3*time.Hour + time.Minute)
		k.Stop()
		if n := strings.Count(r.log.String(), "no snapshot of the store"); len(f.taken) < 100 || n < 2 || n > 3 || !r.newest.IsZero() {
			t.Errorf("%d tried, %d lines, newest %s", len(f.taken), n, r.newest)
		}
		if _, err := k.Take(t.Context(), "upgrade"); abi.CodeOf(err) != abi.Unavailable || abi.As(err).Hint == "" {
			t.Errorf("on request: %v", err)
		}
	})
}

// Take refuses a reason that is not a word, and reports damage.
func TestTake(t *testing.T) {
	f := &fake{}
	k, r := open(t, f, 0)
	for _, why := range []string{"../x", "a-b", "A", "a1"} {
		if _, err := k.Take(t.Context(), why); abi.CodeOf(err) != abi.BadFields || len(f.taken) != 0 {
			t.Errorf("%q: %v", why, err)
		}
	}
	if s, err := k.Take(t.Context(), "upgrade"); err != nil || s.Why != "upgrade" || !s.Taken.Equal(r.newest) {
		t.Errorf("%+v, %v", s, err)
	}
	f.err = &store.DamagedError{Path: "store.db", Count: 1, Places: []string{"page 3"}}
	if _, err := k.Take(t.Context(), "upgrade"); !errors.Is(err, store.ErrDamaged) || r.damaged == nil || r.damaged.Hint == "" {
		t.Errorf("%v, reported %v", err, r.damaged)
	}
	f.err = os.ErrInvalid
	if _, err := k.Take(t.Context(), "upgrade"); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// Three snapshots of each reason are kept, or as many as the option says.
func TestKeep(t *testing.T) {
	for keep, want := range map[int]int{0: 3, 1: 1, 5: 5} {
		f := &fake{}
		k, _ := openKeeping(t, f, 0, keep)
		if _, err := k.Take(t.Context(), "upgrade"); err != nil {
			t.Fatal(err)
		}
		if got := f.all()[0].Keep; got != want {
			t.Errorf("with %d the store keeps %d, want %d", keep, got, want)
		}
	}
}

// The newest snapshot of the same store counts, also of an earlier process.
func TestOpenFindsTheNewest(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := db.Snapshot(t.Context(), store.SnapshotOptions{Why: "upgrade"})
	if err != nil {
		t.Fatal(err)
	}
	var newest time.Time
	if _, err := snapshots.Open(snapshots.Options{Dir: dir, Store: db, Taken: func(at time.Time) { newest = at }}); err != nil || !newest.Equal(s.Taken) {
		t.Errorf("newest %s, want %s: %v", newest, s.Taken, err)
	}
	if list, err := snapshots.List(dir); err != nil || len(list) != 1 || list[0].Path != s.Path || list[0].Why != "upgrade" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := snapshots.List(t.TempDir()); err != nil || len(list) != 0 {
		t.Errorf("an empty folder: %+v, %v", list, err)
	}
}
