package run

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/process"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// execute begins a run where runs are executed and follows it: in the process that
// has the store if that accepts runs, otherwise in this one, which then ends with its
// runs. begin starts or resumes the run and returns its id.
func (a verbs) execute(ctx context.Context, f *runFlags, begin func(*app.Session) (sentinels.RunID, error)) (err error) {
	return a.inRunProcess(ctx, f, func(s *app.Session) error {
		out, err := a.follow(ctx, s, func() (sentinels.RunID, error) { return begin(s) })
		if err != nil {
			return err
		}
		return a.ended(s, out)
	})
}

// inRunProcess calls do with a session of a process that executes runs. A process that
// no longer accepts runs when it is asked, because its own have ended, is replaced.
func (a verbs) inRunProcess(ctx context.Context, f *runFlags, do func(*app.Session) error) error {
	for {
		s, err := a.ConnectForRun(ctx, a.runOptions(f))
		if err != nil {
			return err
		}
		again, err := a.attempt(s, f, do)
		if !again {
			return err
		}
	}
}

func (a verbs) attempt(s *app.Session, f *runFlags, do func(*app.Session) error) (again bool, err error) {
	defer a.CloseSession(s, &err)
	if s.Process == nil {
		if err := f.elsewhere(a); err != nil {
			return false, err
		}
	}
	err = do(s)
	return process.IsRefusal(err), err
}

// runOptions are those of a process that this verb opens to execute a run.
func (a verbs) runOptions(f *runFlags) host.Options {
	opt := a.HostOptions()
	opt.Model, opt.Record, opt.Replay = f.model, a.Path(f.record), a.Path(f.replay)
	opt.Append = f.resume != ""
	opt.OnInterrupt = sentinels.Interrupt(f.onInterrupt)
	return opt
}

// elsewhere refuses flags that only this process could obey. To ignore them would cost
// money, with --replay, or the record that was wanted.
func (f *runFlags) elsewhere(a verbs) error {
	if f.record != "" || f.replay != "" || f.model != "" || a.Flags.Plugins != "" {
		return app.NewUsageError("another process executes the run: --model, --record, --replay and --plugins are for a run in this one", "use another store with --state DIR, so that it runs here")
	}
	return nil
}

// follow begins a run and follows it to its end, or until only a person can help.
// Meanwhile Ctrl-C stops the run and not the program. A run in another process
// continues when this one ends.
func (a verbs) follow(ctx context.Context, s *app.Session, begin func() (sentinels.RunID, error)) (outcome, error) {
	return a.followAs(ctx, s, begin, false, nil)
}

// followAs is follow, with the view of a task if task, and answers for its questions.
func (a verbs) followAs(ctx context.Context, s *app.Session, begin func() (sentinels.RunID, error), task bool, answers *always) (outcome, error) {
	// Progress that the run reports before its id is known is read from here on.
	cursor, err := s.Cursor(ctx)
	if err != nil {
		return outcome{}, err
	}
	stop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a.SetInterrupt(cancel)
	defer a.SetInterrupt(nil)
	if s.Process != nil {
		s.Process.AcceptRuns()
		defer s.Process.RefuseRuns()
	}
	id, err := begin()
	if err != nil {
		return outcome{}, err
	}
	w := watchRun(ctx, a, s, id, cursor)
	defer w.close()
	f := &follower{
		app: a, session: s, watch: w, id: id, task: task, always: answers, view: a.newView(id, task),
		busy: map[string]int{}, early: early{}, notice: make(chan string, 1),
	}
	defer f.view.close()
	return f.follow(ctx, stop)
}

// ended shows how a run ended and returns the exit code for it.
func (a verbs) ended(s *app.Session, out outcome) error {
	out.served = s.Serves()
	if err := a.showOutcome(out); err != nil {
		return err
	}
	if p := s.Process; p != nil && p.Host().Replaying() {
		if err := p.Host().WriteDivergences(a.Err.Stream()); err != nil {
			return err
		}
	}
	if code := app.StatusCode(out.Status); code != app.ExitOK {
		return app.ExitError(code)
	}
	return nil
}

// starter returns a function that starts a run of target: a file, standard input, or a
// name. A file is read now, so that a mistyped one opens no store.
func (a verbs) starter(target string, f *runFlags) (func(context.Context, *app.Session) (sentinels.RunID, error), error) {
	var file *app.Source
	if a.IsFile(target) {
		var err error
		if file, err = a.ReadTrusted(target); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, s *app.Session) (sentinels.RunID, error) {
		src := file
		if src == nil {
			var err error
			if src, err = a.NamedSource(ctx, s, target); err != nil {
				return "", err
			}
		}
		return a.start(ctx, s, src, f)
	}, nil
}

// start starts a run of the definition of src.
func (a verbs) start(ctx context.Context, s *app.Session, src *app.Source, f *runFlags) (sentinels.RunID, error) {
	params := map[string]any{"pinned": f.pinned}
	if f.force {
		params["force"] = true
	}
	if f.onInterrupt != "" {
		params["onInterrupt"] = f.onInterrupt
	}
	def, problems := app.DecodeAnyStep(src)
	if err := problems.Err(); err != nil && src.Stored != "" {
		return "", err
	}
	if len(problems) > 0 { // step types may have more
		if err := a.ValidateWith(ctx, s, src); err != nil {
			return "", err
		}
		return "", problems.Err()
	}
	g, err := a.values(def, f)
	if err != nil {
		return "", err
	}
	if src.Stored != "" {
		params["sentinelId"] = src.Stored
	} else {
		if err := a.ValidateWith(ctx, s, src, output.SortedKeys(g.variables)...); err != nil {
			return "", err
		}
		params["definition"] = string(src.Text)
		src.PlaceBeside(params)
	}
	// A server that a URL names has none of our folders.
	switch {
	case src.Stored != "" && a.Flags.Workspace == "" && def.Workspace != "" && !filepath.IsAbs(def.Workspace):
		// It is relative to the file of the stored definition, which the engine knows.
	case !s.ByURL:
		params["workspace"] = a.base(src, def)
	case a.Flags.Workspace != "":
		params["workspace"] = a.Flags.Workspace
	}
	params["inputs"] = g.inputs
	if len(g.variables) > 0 {
		params["variables"] = g.variables
	}
	if g.event != nil {
		params["event"] = g.event
	}
	var out struct {
		Run sentinels.RunID `json:"run"`
	}
	err = s.Call(ctx, "sentinel/start", params, &out)
	if e := abi.As(err); e != nil && e.Field == "" { // with a field, an input is wrong and not the definition
		err = app.Invalid(err)
	}
	return out.Run, app.NameFile(err, src)
}

// resumeRun resumes a run and follows it. One that has ended is shown: it may have
// ended just before its process did.
func (a verbs) resumeRun(ctx context.Context, f *runFlags) error {
	f.movesTo = a.MovesTo()
	return a.inRunProcess(ctx, f, func(s *app.Session) error {
		info, err := a.FindRun(ctx, s, f.resume, true)
		if err != nil {
			return err
		}
		if info.Status.Final() {
			a.Info("run %s has ended: %s", info.ID, info.Status)
			res, err := a.result(ctx, s, info.ID)
			if err != nil {
				return err
			}
			return a.ended(s, outcome{Result: res})
		}
		return a.resumeHere(ctx, s, info, f)
	})
}

func (a verbs) resumeHere(ctx context.Context, s *app.Session, info runtime.RunInfo, f *runFlags) error {
	params, changes, err := f.resumption(info.ID, a.User())
	if err != nil {
		return err
	}
	out, err := a.follow(ctx, s, func() (sentinels.RunID, error) {
		if info.Live && info.Status != sentinels.StatusPaused && !changes {
			a.Info("run %s is active", info.ID)
			return info.ID, nil
		}
		return info.ID, s.Call(ctx, "sentinel/resume", params, nil)
	})
	if err != nil {
		return err
	}
	return a.ended(s, out)
}

// result returns how a run ended.
func (a verbs) result(ctx context.Context, s *app.Session, id sentinels.RunID) (res runtime.Result, err error) {
	return res, s.Call(ctx, "sentinel/result", map[string]any{"run": id}, &res)
}

// errRunEnded ends a watch: there is no more progress.
var errRunEnded = fmt.Errorf("the run has ended")
