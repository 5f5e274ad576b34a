package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/process"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) {
	runtime.ServeChild() // conditions run in a child of this program
	m.Run()
}

func open(t *testing.T, private bool) *process.Process {
	t.Helper()
	project := t.TempDir()
	p, err := process.Open(t.Context(), process.Options{
		Host:    host.Options{Workspace: project, Config: filepath.Join(t.TempDir(), "none.json")},
		Version: "1.2.3", Private: private,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// start starts a run of steps and returns its id.
func start(t *testing.T, e client.Engine, steps string) sentinels.RunID {
	t.Helper()
	id, err := tryStart(t.Context(), e, steps)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func tryStart(ctx context.Context, e client.Engine, steps string) (sentinels.RunID, error) {
	var out json.RawMessage
	err := e.Call(ctx, "sentinel/start", map[string]any{"definition": `{"name": "test", "steps": ` + steps + `}`}, &out)
	return process.RunOf(out), err
}

const (
	short = `[{"type": "wait", "durationMs": 1}]`
	long  = `[{"type": "wait", "durationMs": 600000}]`
)

var errSeen = errors.New("seen")

// follow returns the kinds of the progress of a run, from a cursor to its end.
func follow(t *testing.T, e client.Engine, cursor string, id sentinels.RunID) []string {
	t.Helper()
	var kinds []string
	err := e.Watch(t.Context(), client.WatchOptions{Topics: []string{"run:" + string(id)}, Cursor: cursor}, func(m client.Message) error {
		kinds = append(kinds, m.Kind)
		if m.Kind == string(runtime.OnRunEnd) {
			return errSeen
		}
		return nil
	})
	if !errors.Is(err, errSeen) {
		t.Errorf("watch: %v", err)
	}
	return kinds
}

// Both implementations of client.Engine do the same, with one store.
func TestEngines(t *testing.T) {
	p := open(t, false)
	p.AcceptRuns()
	remote := client.Local(p.Host().State())
	defer remote.Close()
	type result struct {
		commands, logs, kinds []string
		missing, invalid      *abi.Error
		status                sentinels.Status
	}
	results := map[string]result{}
	for name, e := range map[string]client.Engine{"local": p, "remote": remote} {
		var r result
		list, err := e.Commands(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			r.commands = append(r.commands, c.Name+" "+c.Summary)
		}
		cursor, err := e.Cursor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := start(t, e, short)
		r.kinds = follow(t, e, cursor, id)
		for line, err := range e.Logs(t.Context(), id, 0) {
			var p runtime.Progress
			if err != nil || json.Unmarshal(line, &p) != nil || p.Run != id {
				t.Errorf("%s: log line %s, %v", name, line, err)
			}
			r.logs = append(r.logs, string(p.Event))
		}
		n := 0
		for range e.Logs(t.Context(), id, 2) {
			n++
		}
		if n != len(r.logs)-2 {
			t.Errorf("%s: %d lines from line 2 on, of %d", name, n, len(r.logs))
		}
		var out struct{ State runtime.RunInfo }
		if err := e.Call(t.Context(), "sentinel/status", map[string]any{"run": id}, &out); err != nil {
			t.Error(err)
		}
		r.status = out.State.Status
		r.missing = abi.As(e.Call(t.Context(), "sentinel/status", map[string]any{"run": "none"}, nil))
		r.invalid = abi.As(e.Call(t.Context(), "sentinel/status", map[string]any{"rum": "x"}, nil))
		results[name] = r
	}
	if diff := cmp.Diff(results["local"], results["remote"], cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
	r := results["local"]
	if r.status != sentinels.StatusCompleted || !slices.Contains(r.kinds, string(runtime.OnStepEnd)) || r.missing == nil || r.missing.Code != abi.NotFound || r.invalid == nil {
		t.Errorf("%+v", r)
	}
}

// A process accepts runs of others only while it executes runs itself.
func TestAdmission(t *testing.T) {
	p := open(t, false)
	remote := client.Local(p.Host().State())
	defer remote.Close()
	refused := func() {
		t.Helper()
		if id, err := tryStart(t.Context(), remote, long); !process.IsRefusal(err) {
			t.Errorf("run %s, %v", id, err)
		}
		info, err := control.Owner(t.Context(), p.Host().State())
		if err != nil || info.AcceptsRuns {
			t.Errorf("%+v, %v", info, err)
		}
	}
	refused()
	p.AcceptRuns()
	mine := start(t, p, short)
	foreign := start(t, remote, long)
	if info, err := control.Owner(t.Context(), p.Host().State()); err != nil || !info.AcceptsRuns || !slices.Contains(info.Runs, string(foreign)) {
		t.Errorf("%+v, %v", info, err)
	}
	reported := make(chan sentinels.RunID, 10)
	finished := make(chan error, 1)
	go func() { finished <- p.Finish(t.Context(), mine, func(id sentinels.RunID) { reported <- id }) }()
	if id := <-reported; id != foreign {
		t.Errorf("reported %s, want %s", id, foreign)
	}
	select {
	case err := <-finished:
		t.Fatalf("finished with an active run: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := p.StopAll(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-finished; err != nil {
		t.Error(err)
	}
	refused()
}

// A run that waits for a person does not keep the process.
func TestFinishLeavesWaitingRuns(t *testing.T) {
	p := open(t, true)
	p.AcceptRuns()
	mine, waiting := start(t, p, short), start(t, p, `[{"type": "approve", "prompt": "really?"}]`)
	var out struct{ State runtime.RunInfo }
	for ; out.State.Status != sentinels.StatusWaiting; time.Sleep(time.Millisecond) {
		if err := p.Call(t.Context(), "sentinel/status", map[string]any{"run": waiting, "brief": true}, &out); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Finish(t.Context(), mine, func(sentinels.RunID) {}); err != nil {
		t.Error(err)
	}
}

func TestPrivate(t *testing.T) {
	p := open(t, true)
	if _, err := control.Owner(t.Context(), p.Host().State()); !errors.Is(err, control.ErrNoOwner) {
		t.Errorf("owner: %v", err)
	}
}

// A second process gets ErrHeld and changes nothing.
func TestLocked(t *testing.T) {
	p := open(t, false)
	second, err := process.Open(t.Context(), process.Options{Host: host.Options{Dir: p.Host().Dir(), Workspace: p.Host().Workspace(), Config: "none.json"}})
	if !errors.Is(err, runtime.ErrHeld) {
		t.Errorf("second process: %v, %v", second, err)
	}
	if _, err := control.Owner(t.Context(), p.Host().State()); err != nil {
		t.Error(err)
	}
}

// A watch ends with its context, and with an invalid topic.
func TestWatchEnds(t *testing.T) {
	p := open(t, true)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	none := func(client.Message) error { return nil }
	if err := p.Watch(ctx, client.WatchOptions{Topics: []string{"runs"}}, none); !errors.Is(err, cause) {
		t.Errorf("ended context: %v", err)
	}
	if err := p.Watch(t.Context(), client.WatchOptions{Topics: []string{"no topic"}}, none); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "topic") {
		t.Errorf("invalid topic: %v", err)
	}
}
