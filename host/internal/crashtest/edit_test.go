//go:build linux

package crashtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// edited loops over waits; the name of a step identifies the edit that made it.
const edited = `{"id":"kill","name":"kill","steps":[{"type":"wait","durationMs":1,"name":"first"}],
	"loop":{"type":"continuous","intervalMs":1},"safety":{"maxIterations":1000000}}`

// editAnswer is the result of a command that edits.
type editAnswer struct {
	Revision, Edit int
	Hash           string
	Steps          int
}

// edit edits steps by commands, one after the other, and reports each that was
// acknowledged. It ends with the process.
func (o order) edit(ctx context.Context, h *host.Host, send func(report)) error {
	target := "kill"
	if o.Edits == "run" {
		target = string(o.Run)
	}
	steps := 1
	for n := 0; ; n++ {
		step := map[string]any{"type": "wait", "durationMs": 1, "name": fmt.Sprintf("%s %d.%d", o.Edits, o.Life, n)}
		name, params := "sentinel/step/add", map[string]any{"sentinelId": target, "step": step}
		switch {
		case steps > 6:
			name, params = "sentinel/step/remove", map[string]any{"sentinelId": target, "index": rand.IntN(steps)}
		case n%3 == 2:
			name, params = "sentinel/step/update", map[string]any{"sentinelId": target, "index": rand.IntN(steps), "step": step}
		}
		raw, err := json.Marshal(params)
		if err != nil {
			return err
		}
		out, err := h.Call(ctx, name, raw)
		if err != nil {
			return fmt.Errorf("%s %s: %w", name, raw, err)
		}
		answer := &editAnswer{}
		if err := json.Unmarshal(out, answer); err != nil {
			return err
		}
		steps = answer.Steps
		send(report{Kind: "edited", Edited: answer})
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
	}
}

// TestKillWhileEditing kills a host whose sentinel is edited while it loops.
// Every acknowledged edit is still stored afterwards, each iteration executed the steps
// of one revision or of one edit of the run, and no iteration uses an older one than the
// iteration before.
func TestKillWhileEditing(t *testing.T) {
	dir := t.TempDir()
	o := order{Dir: filepath.Join(dir, ".sentinel"), Workspace: dir, Crashes: 1 << 20}
	warmCache(t, o.Workspace)
	write(t, dir, edited)
	server := newModelServer(t).URL
	lives := 8
	if testing.Short() {
		lives = 4
	}
	// Revisions and edits by what they were acknowledged to be.
	hashes := map[[2]int]string{}
	last := [2]int{1, 0}
	for o.Life = 1; o.Life <= lives; o.Life++ {
		if o.Edits = "sentinel"; o.Life > lives/2 {
			o.Edits = "run"
		}
		p := plan{after: afterResume, delay: time.Duration(50+rand.IntN(300)) * time.Millisecond}
		if o.Run == "" {
			p.after, p.count = afterEvent, 1 // the run has begun then
		}
		l := start(t, o, server)
		l.live(t, p, nil)
		if !l.killed {
			t.Fatalf("life %d ended by itself: %s", o.Life, l.tail())
		}
		for _, r := range l.reports {
			if r.Progress != nil && r.Progress.Run != "" {
				o.Run = r.Progress.Run
			}
			if r.Edited != nil {
				last = [2]int{r.Edited.Revision, r.Edited.Edit}
				hashes[last] = r.Edited.Hash
			}
		}
		if o.Run == "" {
			t.Fatalf("life %d: no run began: %s", o.Life, l.tail())
		}
	}
	h, err := host.Open(t.Context(), host.Options{Dir: o.Dir, Workspace: o.Workspace})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	judgeEdits(t, h.Runtime(), o.Run, hashes, last)
}

// judgeEdits holds what is in the store to what was acknowledged.
func judgeEdits(t *testing.T, rt *runtime.Runtime, run sentinels.RunID, hashes map[[2]int]string, last [2]int) {
	t.Helper()
	known := map[string]*sentinels.Definition{} // by hash
	for at, hash := range hashes {
		if at[1] != 0 {
			continue
		}
		s, err := rt.Revision("kill", at[0])
		if err != nil {
			if kept, _ := rt.Revisions("kill"); len(kept) > 0 && kept[len(kept)-1].Revision > at[0] {
				continue // it went with retention
			}
			t.Errorf("revision %d was acknowledged: %v", at[0], err)
			continue
		}
		if s.Hash != hash {
			t.Errorf("revision %d was acknowledged as %.8s and is %.8s", at[0], hash, s.Hash)
		}
		if known[s.Hash], err = rt.Decoded(s); err != nil {
			t.Error(err)
		}
	}
	v, err := rt.RunDefinition(run)
	if err != nil || v.Edit < last[1] || last[1] == 0 {
		t.Fatalf("the run's definition is edit %d of revision %d, %v; acknowledged was %d", v.Edit, v.Revision, err, last[1])
	}
	known[v.Definition.Hash()] = v.Definition
	tr, err := rt.Trace(run)
	if err != nil {
		t.Fatal(err)
	}
	newest, compared := [2]int{}, 0
	for _, it := range tr.Iterations {
		at := [2]int{it.Revision, it.Edit}
		if slices.Compare(at[:], newest[:]) < 0 {
			t.Errorf("pass %d used %v, and one before it %v", it.Number, at, newest)
		}
		newest = at
		if hash, ok := hashes[at]; ok && hash != it.Hash {
			t.Errorf("pass %d used %.8s as %v, which was acknowledged as %.8s", it.Number, it.Hash, at, hash)
		}
		def := known[it.Hash]
		if def == nil || !it.Done {
			continue
		}
		compared++
		var want, got []string
		for i := range def.Steps {
			want = append(want, def.Steps[i].Name)
		}
		for _, s := range it.Steps {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("iteration %d executed %q; %v is %q", it.Number, got, at, want)
		}
	}
	t.Logf("%d edits acknowledged, %d passes kept, %d of them compared step by step; the last used %v", len(hashes), len(tr.Iterations), compared, newest)
	if len(hashes) < 10 || newest[1] == 0 {
		t.Error("too little happened")
	}
}
