package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A damagedState is a state folder with all kinds of runs, and what was in it before the damage.
type damagedState struct {
	dir   string
	store []byte // the sound file
	snaps string // its folder of snapshots
	w     *fakeHost
	runs  map[sentinels.RunID]runtime.RunInfo
}

const waiterDefinition = `{"id":"waiter","name":"waiter","steps":[{"type":"call","command":"world/act","value":1,"outputTo":"a"},
	{"type":"pause","event":"go"},{"type":"call","command":"world/act","value":"$a.value","outputTo":"b"}],"loop":{"type":"count","max":3}}`

// openOn opens a runtime on a state folder with the test's step types.
func openOn(t testing.TB, w *fakeHost, dir string) *runtime.Runtime {
	t.Helper()
	rt, err := runtime.Open(context.Background(), runtime.Options{Dir: dir, Commands: w, Models: w, Executions: w, CacheDir: cacheDir})
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.AddModule(rt, steps()); err != nil {
		t.Fatal(err)
	}
	return rt
}

// work brings runs about that are over and runs that wait in their second pass,
// and documents and revisions beside them.
func (k *damagedState) work(t *testing.T, rt *runtime.Runtime, round int) {
	t.Helper()
	for i := range 15 {
		runToEnd(t, rt, fmt.Sprintf(`{"name":"over","steps":[{"type":"call","command":"world/act","value":%q,"outputTo":"v"}],"loop":{"type":"count","max":2}}`,
			strings.Repeat("x", 100*i)), runtime.StartOptions{})
	}
	var ids []sentinels.RunID
	for range 8 {
		ids = append(ids, start(t, rt, waiterDefinition, runtime.StartOptions{}))
	}
	passes := func(n int) func() bool {
		return func() bool {
			for _, id := range ids {
				if tr, err := rt.Trace(id); err != nil || len(tr.Iterations) < n || len(tr.Iterations[n-1].Steps) < 2 {
					return false
				}
			}
			return true
		}
	}
	until(t, "the waiters to wait", passes(1))
	if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
		t.Fatal(err)
	}
	until(t, "the waiters to wait again", passes(2))
	for i := range 60 {
		err := rt.Documents().Update(within(t), func(tx *runtime.DocumentTx) error {
			_, err := tx.Put(within(t), "things", fmt.Sprintf("%d-%04d", round, i), fmt.Appendf(nil, "%q", strings.Repeat("d", 400)), 0)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		def := decode(t, rt, strings.Replace(oneLook, `"value":1`, fmt.Sprintf(`"value":%d`, i+100*round), 1))
		if _, err := rt.Save(within(t), def, runtime.AnyRevision); err != nil {
			t.Fatal(err)
		}
	}
}

// newDamagedState makes the state: a snapshot in the middle, and a crash at the end.
func newDamagedState(t *testing.T) *damagedState {
	t.Helper()
	k := &damagedState{dir: t.TempDir(), w: newFakeHost(), runs: map[sentinels.RunID]runtime.RunInfo{}}
	rt := openOn(t, k.w, k.dir)
	k.work(t, rt, 0)
	if _, err := rt.Snapshot(within(t), "hourly"); err != nil {
		t.Fatal(err)
	}
	k.work(t, rt, 1)
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		k.runs[r.ID] = r
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	unclean(t, k.dir)
	if k.store, err = os.ReadFile(filepath.Join(k.dir, "store.db")); err != nil {
		t.Fatal(err)
	}
	k.snaps = filepath.Join(k.dir, "snapshots")
	return k
}

// copyTo makes a state folder with the given store file.
func (k *damagedState) copyTo(t *testing.T, file []byte, snapshots bool) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "store.db"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	unclean(t, dir)
	if snapshots {
		if err := os.CopyFS(filepath.Join(dir, "snapshots"), os.DirFS(k.snaps)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "blobs"), os.DirFS(filepath.Join(k.dir, "blobs"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// corrupt damages a copy of the store in one of the ways that disks do.
func corrupt(r *rand.Rand, b []byte) (string, []byte) {
	at := r.IntN(len(b))
	page := at &^ 4095
	switch r.IntN(6) {
	case 0:
		for range 1 + r.IntN(200) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		return "flipped bits", b
	case 1:
		return fmt.Sprintf("cut off at %d", at), b[:at]
	case 2:
		clear(b[page:min(page+4096*(1+r.IntN(8)), len(b))])
		return fmt.Sprintf("zeros from %d", page), b
	case 3:
		for i := range b[page:min(page+4096, len(b))] {
			b[page+i] = byte(r.IntN(256))
		}
		return fmt.Sprintf("noise at %d", page), b
	case 4:
		clear(b[:min(4096*(1+r.IntN(3)), len(b))])
		return "no head", b
	default:
		copy(b[page:min(page+4096, len(b))], b[r.IntN(len(b))&^4095:])
		return fmt.Sprintf("a wrong page at %d", page), b
	}
}

// Whatever happens to the file, nothing crashes, the result opens and is sound,
// and what goes on by itself does nothing twice.
func TestRepairOfHundredsOfWrecks(t *testing.T) {
	k := newDamagedState(t)
	rounds := 240
	if testing.Short() {
		rounds = 40
	}
	r := rand.New(rand.NewPCG(7, 11))
	var repaired, paused, whole, lost int
	for n := range rounds {
		what, b := corrupt(r, slices.Clone(k.store))
		dir := k.copyTo(t, b, n%4 != 3)
		full := n%10 == 0 // every tenth is continued to the end
		report, err := runtime.Repair(within(t), runtime.RepairOptions{Dir: dir})
		if abi.CodeOf(err) == abi.NotFound || len(b) == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("round %d, %s: %v", n, what, err)
		}
		if report.Sound {
			os.RemoveAll(dir)
			continue
		}
		repaired++
		paused, whole, lost = paused+len(report.Runs.Paused), whole+report.Runs.Whole, lost+len(report.Runs.Lost)
		if kept, err := os.ReadFile(report.Kept); err != nil || !bytes.Equal(kept, b) {
			t.Fatalf("round %d, %s: the damaged file is not kept: %v", n, what, err)
		}
		k.check(t, fmt.Sprintf("round %d, %s", n, what), dir, report, full)
		os.RemoveAll(dir)
	}
	t.Logf("%d repaired: %d runs whole, %d paused, %d lost", repaired, whole, paused, lost)
	if repaired < rounds/4 || whole == 0 || paused == 0 {
		t.Error("the damages prove too little")
	}
}

// check opens a repaired state and compares its content. With full it lets the runs
// that are not paused continue, and checks their effects.
func (k *damagedState) check(t *testing.T, what, dir string, report runtime.RepairReport, full bool) {
	t.Helper()
	w := k.w.next()
	rt := openOn(t, w, dir)
	defer rt.Close()
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	there := map[sentinels.RunID]bool{}
	var goOn []sentinels.RunID
	for _, info := range runs {
		there[info.ID] = true
		before, known := k.runs[info.ID]
		if !known {
			t.Errorf("%s: run %s never was", what, info.ID)
			continue
		}
		if before.Status.Final() != info.Status.Final() && info.Status != sentinels.StatusPaused && info.Status != sentinels.StatusFailed {
			t.Errorf("%s: run %s was %s and is %s", what, info.ID, before.Status, info.Status)
		}
		if !info.Status.Final() && info.Status != sentinels.StatusPaused {
			goOn = append(goOn, info.ID)
		}
		if info.Status == sentinels.StatusPaused && !slices.Contains(report.Runs.Paused, info.ID) {
			t.Errorf("%s: run %s is paused and the report does not say so", what, info.ID)
		}
		if _, err := rt.Trace(info.ID); err != nil && !slices.Contains(report.Runs.Lost, info.ID) && abi.CodeOf(err) != abi.NotFound {
			t.Errorf("%s: trace of %s run %s: %v", what, info.Status, info.ID, err)
		}
	}
	if _, err := rt.Definitions(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if !full {
		return
	}
	var going []sentinels.RunID
	for _, id := range goOn {
		if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
			t.Errorf("%s: resume: %v", what, err)
			continue
		}
		going = append(going, id)
	}
	goOn = going
	// Both passes that are left, for all of them.
	for range 2 {
		if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
			t.Fatal(err)
		}
		if !came(func() bool {
			for _, id := range goOn {
				if info, err := rt.Status(id); err != nil || !info.Status.Final() && info.Iteration < 3 {
					return false
				}
			}
			return true
		}) {
			t.Fatalf("%s: not all runs that go on went on", what)
		}
	}
	for _, id := range goOn {
		if !came(func() bool {
			info, err := rt.Status(id)
			if err == nil && !info.Status.Final() {
				_, err = rt.Emit(within(t), sentinels.Event{Name: "go"})
			}
			return err == nil && info.Status.Final()
		}) {
			t.Fatalf("%s: run %s went on and does not end", what, id)
		}
		info, err := rt.Status(id)
		if err != nil || info.Status != sentinels.StatusCompleted {
			t.Errorf("%s: run %s went on and ended %s: %v, %v", what, id, info.Status, info.Error, err)
		}
	}
	for key, n := range w.made {
		if n > 1 {
			t.Errorf("%s: effect %s was made %d times", what, key, n)
		}
	}
}

// came waits for a condition and reports whether it was met within a time that
// even a busy machine does not need.
func came(met func() bool) bool {
	for end := time.Now().Add(2 * time.Minute); !met(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// One lost page costs what was on it and no more, and the snapshot fills in.
func TestRepairKeepsAllButTheDamage(t *testing.T) {
	k := newDamagedState(t)
	file := slices.Clone(k.store)
	b := file
	at := pageWith(t, b, []byte(`"collection":"things","id":"0-0030"`))
	clear(b[at : at+4096])
	dir := k.copyTo(t, b, true)
	if _, err := runtime.Open(within(t), runtime.Options{Dir: dir}); !errors.Is(err, runtime.ErrDamaged) {
		t.Fatalf("open: %v", err)
	}
	dry, err := runtime.Repair(within(t), runtime.RepairOptions{Dir: dir, DryRun: true})
	if err != nil || dry.Kept != "" || dry.Damaged == 0 {
		t.Fatalf("%+v, %v", dry, err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "store.db")); err != nil || !bytes.Equal(now, b) {
		t.Fatal("a dry run changed the store")
	}
	report, err := runtime.Repair(within(t), runtime.RepairOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	dry.DryRun, report.Kept, report.Took, dry.Took = false, "", 0, 0
	if d := cmp.Diff(dry, report); d != "" {
		t.Errorf("a dry run tells something else (-dry +done):\n%s", d)
	}
	if report.Runs.Whole != len(k.runs) || len(report.Runs.Paused)+len(report.Runs.Lost)+len(report.Runs.Cut) > 0 {
		t.Errorf("%+v", report.Runs)
	}
	i := slices.IndexFunc(report.Buckets, func(b runtime.RepairedBucket) bool { return b.Name == "documents" })
	if b := report.Buckets[i]; b.Whole || b.FromSnapshot == 0 || b.Salvaged+b.FromSnapshot != 120 {
		t.Errorf("%+v, want all 120 documents", b)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "repairing*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	again, err := runtime.Repair(within(t), runtime.RepairOptions{Dir: dir})
	if err != nil || !again.Sound {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	k.check(t, "one page", dir, report, true)
}

// pageWith returns the place of the page in use that holds text; pages that
// were freed hold old copies.
func pageWith(t *testing.T, b, text []byte) int {
	t.Helper()
	for at := 2 * 4096; at < len(b); at += 4096 {
		page := b[at : at+4096]
		if !strings.Contains(string(page), string(text)) {
			continue
		}
		saved := slices.Clone(page)
		clear(page)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "store.db"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		err := runtime.CheckStore(dir)
		copy(page, saved)
		if errors.Is(err, runtime.ErrDamaged) {
			return at
		}
	}
	t.Fatalf("no page in use holds %q", text)
	return 0
}

// A snapshot can be gone back to, also of a sound store: then it is
// unknown what the runs did since, and all active runs are paused.
func TestRepairFromASnapshot(t *testing.T) {
	k := newDamagedState(t)
	dir := k.copyTo(t, k.store, true)
	list, err := runtime.Snapshots(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	for from, code := range map[string]abi.Code{"nothing.db": abi.NotFound, filepath.Join(dir, "store.open"): abi.BadFields} {
		if _, err := runtime.Repair(within(t), runtime.RepairOptions{Dir: dir, From: from}); abi.CodeOf(err) != code {
			t.Errorf("%s: %v", from, err)
		}
	}
	report, err := runtime.Repair(within(t), runtime.RepairOptions{Dir: dir, From: filepath.Base(list[0].Path)})
	if err != nil || len(report.Runs.Paused) != 8 || !strings.Contains(report.Kept, "replaced") || report.Snapshot == nil {
		t.Fatalf("%+v, %v", report, err)
	}
	rt := openOn(t, k.w.next(), dir)
	defer rt.Close()
	info := status(t, rt, report.Runs.Paused[0])
	if info.Status != sentinels.StatusPaused || !strings.Contains(info.Reason, "repaired") {
		t.Errorf("%+v", info)
	}
	// The rest of the summary is what it was.
	before := k.runs[info.ID]
	if info.Sentinel != before.Sentinel || info.Name != before.Name || info.Hash == "" || info.Workspace != before.Workspace || info.Root != before.Root || !info.CreatedAt.Equal(before.CreatedAt) {
		t.Errorf("%+v, want the rest as it was: %+v", info, before)
	}
	if err := rt.Resume(within(t), info.ID, runtime.ResumeOptions{}); err != nil {
		t.Errorf("it cannot be resumed: %v", err)
	}
}

// A store that is open in another process is not changed; a missing one cannot be
// repaired.
func TestRepairRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := runtime.Repair(within(t), runtime.RepairOptions{Dir: dir}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("nothing there: %v", err)
	}
	rt, err := runtime.Open(context.Background(), runtime.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if _, err := runtime.Repair(within(t), runtime.RepairOptions{Dir: dir}); !errors.Is(err, runtime.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("%v", err)
	}
}
