//go:build linux

package crashtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// orderVar is the environment variable with the order of a host process.
const orderVar = "KILLTEST_ORDER"

func TestMain(m *testing.M) {
	runtime.ServeChild()
	if text := os.Getenv(orderVar); text != "" {
		if err := forbidWrites(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		var o order
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(o.run())
	}
	code := m.Run()
	if dir, err := compiled(); err == nil {
		_ = os.RemoveAll(dir) // left in the temporary folder otherwise
	}
	os.Exit(code)
}

// An order is what a host process does: it resumes Run, or starts the definition in
// the workspace's kill.json if Run is empty.
type order struct {
	Dir       string // the .sentinel folder
	State     string // default Dir/state
	Workspace string
	Run       sentinels.RunID
	Life      int
	Resident  int // see runtime.Limits
	Crashes   int
	Ahead     []runtime.Decision // made before the run is resumed
	Verdict   string             // for every pending decision; empty leaves them open
	Result    json.RawMessage    // goes with Verdict
	CLI       []string           // be the program sentinel instead
	Set       map[string]string  // settings
	Edits     string             // store kill.json and edit it while it runs: "sentinel", or "run" for the run alone
}

// A report is one line that a host writes to its standard output.
type report struct {
	Kind     string // opened, resumed, progress, edited, result, error
	Progress *runtime.Progress
	Result   *runtime.Result
	Edited   *editAnswer
	Error    string
}

func (o order) run() int {
	if len(o.CLI) > 0 {
		return cli.Main(context.Background(), append([]string{"sentinel"}, o.CLI...)...)
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	send := func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(r) // the parent may have ended
	}
	if err := o.execute(context.Background(), send); err != nil {
		send(report{Kind: "error", Error: err.Error()})
		return 1
	}
	return 0
}

func (o order) execute(ctx context.Context, send func(report)) (err error) {
	questions := make(chan runtime.Progress, 100)
	observe := func(p runtime.Progress) {
		if p.Decision != nil {
			questions <- p
		}
		p.Output = nil
		send(report{Kind: "progress", Progress: &p})
	}
	h, err := host.Open(ctx, host.Options{
		Dir: o.Dir, State: o.State, Workspace: o.Workspace, Set: o.Set, Observer: runtime.Observer{Progress: observe},
		Limits: runtime.Limits{Resident: o.Resident, Crashes: o.Crashes},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer func() {
		if closed := h.Close(); err == nil {
			err = closed
		}
	}()
	send(report{Kind: "opened"})
	// The check of this step loads the module of the built-in step types, which the first step of the run
	// would do: kills shortly after the run continues would all meet that, and no step.
	if _, err := h.Call(ctx, "sentinel/validate", json.RawMessage(`{"definition":{"name":"load","steps":[{"type":"wait","durationMs":1}]}}`)); err != nil {
		return err
	}
	rt := h.Runtime()
	go o.decide(ctx, rt, questions) // ends with the process
	if err := o.begin(ctx, rt); err != nil {
		return err
	}
	send(report{Kind: "resumed"})
	if o.Edits != "" {
		return o.edit(ctx, h, send) // until it is killed
	}
	res, err := rt.Wait(ctx, o.Run)
	if err != nil {
		return err
	}
	send(report{Kind: "result", Result: &res})
	return nil
}

// begin starts the run, or resumes it unless it has ended.
func (o *order) begin(ctx context.Context, rt *runtime.Runtime) error {
	if o.Run == "" {
		text, err := os.ReadFile(filepath.Join(o.Workspace, "kill.json"))
		if err != nil {
			return err
		}
		def, problems := rt.Decode(text, "kill.json")
		for _, p := range problems {
			if p.Kind != sentinels.KindWarning {
				return fmt.Errorf("kill.json: %v", problems)
			}
		}
		opt := runtime.StartOptions{Workspace: o.Workspace}
		if o.Edits != "" {
			stored, err := rt.Save(ctx, def, runtime.AnyRevision)
			if err != nil {
				return err
			}
			opt.Revision = stored.Revision
		}
		o.Run, err = rt.Start(ctx, def, opt)
		return err
	}
	info, err := rt.Status(o.Run)
	if err != nil || info.Status.Final() {
		return err
	}
	for _, d := range o.Ahead {
		if err := rt.Decide(ctx, o.Run, d); err != nil {
			return err
		}
	}
	return rt.Resume(ctx, o.Run, runtime.ResumeOptions{})
}

// decide answers what the runs ask and notes each decision before it makes it,
// so that there are never more repeats than notes.
func (o order) decide(ctx context.Context, rt *runtime.Runtime, questions <-chan runtime.Progress) {
	for p := range questions {
		if o.Verdict == "" {
			continue
		}
		note := fmt.Sprintf("%s %s %d %s\n", lifeName(o.Life), p.Run, p.Iteration, p.Decision.Call)
		if err := appendLine(filepath.Join(o.Workspace, "decisions"), note); err != nil {
			panic(err)
		}
		err := rt.Decide(ctx, p.Run, runtime.Decision{Call: p.Decision.Call, Verdict: o.Verdict, Result: o.Result, By: "test"})
		if err != nil {
			fmt.Fprintln(os.Stderr, time.Now(), "decide", p.Decision.Call, err)
		}
	}
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line)
	return err
}
