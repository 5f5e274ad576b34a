package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// dialServer returns a session with a server, nil where none answers: then the
// verb does it here. A process that ends with its own run is no server.
func (a *app) dialServer(ctx context.Context) (*session, error) {
	s, err := a.dial(ctx)
	switch {
	case errors.Is(err, control.ErrNoOwner):
		return nil, nil //nolint:nilnil // nobody is an answer, and a usual one
	case err != nil:
		return nil, err
	case !s.info.Serves:
		return nil, s.close()
	}
	return s, nil
}

// elsewhere refuses what only this process could do for a run. To leave it out in
// silence would cost money, with --replay, or the record that was wanted.
func (f *runFlags) elsewhere() error {
	if f.record != "" || f.replay != "" || f.model != "" {
		return &usageError{"another process carries the run out: --model, --record and --replay are for one that runs here", "use another store with --state DIR, which makes it run here"}
	}
	return nil
}

// startThere has the process that answers start a run: of a stored sentinel if
// there is one of that name, else of the definition that we have. A stored one
// goes first there, unlike here: a server keeps the project's files and its store
// the same, and a run of the stored one follows later edits.
func (a *app) startThere(ctx context.Context, s *session, target string, f *runFlags) (sentinels.RunID, error) {
	if err := f.elsewhere(); err != nil {
		return "", err
	}
	params := map[string]any{"pinned": f.pinned}
	if f.onInterrupt != "" {
		params["onInterrupt"] = f.onInterrupt
	}
	src, def, undo, err := a.startable(ctx, s, target, params)
	if err != nil {
		return "", err
	}
	defer undo()
	g, err := a.values(def, f)
	if err != nil {
		return "", err
	}
	params["inputs"] = g.inputs
	if len(g.variables) > 0 {
		params["variables"] = g.variables
	}
	if g.event != nil {
		params["event"] = g.event.Data
	}
	var out struct {
		Run sentinels.RunID `json:"run"`
	}
	err = s.call(ctx, "sentinel/start", params, &out)
	if e := abi.As(err); e != nil && e.Field == "" { // a field would be an input's, which is no fault of the definition
		err = invalid(err)
	}
	return out.Run, ofFile(err, src)
}

// startable puts what is to be run into the parameters of a start, and where it
// works. A server that a URL names knows no folder of ours, so it takes its own
// unless we name one of its.
func (a *app) startable(ctx context.Context, s *session, target string, params map[string]any) (src *source, def *sentinels.Definition, undo func(), err error) {
	undo = func() {}
	var shown struct {
		Definition json.RawMessage `json:"definition"`
	}
	src = &source{base: a.workspace()}
	if !a.isFile(target) {
		err := s.call(ctx, "sentinel/export", map[string]any{"sentinelId": target}, &shown)
		if err != nil && abi.CodeOf(err) != abi.NotFound {
			return nil, nil, undo, err
		}
		if err == nil {
			src.text, src.file, params["sentinelId"] = shown.Definition, target, target
		}
	}
	if src.text == nil {
		if src, err = a.readSource(target); err != nil {
			return nil, nil, undo, err
		}
		if src == nil {
			return nil, nil, undo, a.noSentinel(target, &abi.Error{Code: abi.NotFound})
		}
		if undo, err = a.give(s, src, params); err != nil {
			return nil, nil, undo, err
		}
	}
	def, problems := sentinels.Decode(src.text, sentinels.DecodeOptions{Triggers: standard.Set().Formats(), File: src.file})
	if err := problems.Err(); err != nil {
		undo()
		return nil, nil, func() {}, err
	}
	if !s.away {
		params["workspace"] = a.base(found{def: def, source: *src})
	} else if a.flags.workspace != "" {
		params["workspace"] = a.flags.workspace // a folder over there
	}
	return src, def, undo, nil
}

// isFile reports whether target means a file and not a name: standard input, a
// path, or a file that is there.
func (a *app) isFile(target string) bool {
	if target == "-" || looksLikeFile(target) || strings.ContainsRune(target, '/') {
		return true
	}
	info, err := os.Stat(a.path(target))
	return err == nil && !info.IsDir()
}

// carryThere has a server carry a run out and follows it, as carryOut does for
// one that is carried out here. Ctrl-C stops the run; going away does not.
func (a *app) carryThere(ctx context.Context, s *session, begin func() (sentinels.RunID, error)) error {
	out, err := a.followThere(ctx, s, begin)
	if err != nil {
		return err
	}
	out.served = true
	return a.ended(out)
}

// followThere begins a run and follows it to its end, or to where only a person
// can help. The feed's cursor comes first: what the run tells before we know its
// id is read from there.
func (a *app) followThere(ctx context.Context, s *session, begin func() (sentinels.RunID, error)) (outcome, error) {
	cursor, err := s.live.Cursor(ctx)
	if err != nil {
		return outcome{}, err
	}
	stop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a.setInterrupt(cancel)
	defer a.setInterrupt(nil)
	id, err := begin()
	if err != nil {
		return outcome{}, err
	}
	told := newFeed()
	c := watchRun(ctx, s, id, cursor, told)
	defer c.close()
	f := &follower{
		app: a, rt: c, feed: told, id: id, view: a.newView(id),
		busy: map[string]int{}, early: early{}, notice: make(chan string, 1),
	}
	defer f.view.close()
	return f.follow(ctx, stop)
}

// resumeServed goes on with a run in a server and follows it. One that is on
// already, as after the server took it up by itself, is followed as it is.
func (a *app) resumeServed(ctx context.Context, s *session, word string, f *runFlags) error {
	if err := f.elsewhere(); err != nil {
		return err
	}
	info, err := a.target(ctx, s, word, true)
	if err != nil {
		return err
	}
	params, err := f.resumption(info.ID, a.user())
	if err != nil {
		return err
	}
	if info.Status.Final() {
		a.say("run %s is over: %s", info.ID, info.Status)
		var res runtime.Result
		if err := s.call(ctx, "sentinel/result", map[string]any{"run": info.ID}, &res); err != nil {
			return err
		}
		return a.ended(outcome{Result: res, served: true})
	}
	return a.carryThere(ctx, s, func() (sentinels.RunID, error) {
		// One parameter is the run itself: nothing more was asked for it.
		if info.Live && info.Status != sentinels.StatusPaused && len(params) == 1 {
			a.say("run %s is on", info.ID)
			return info.ID, nil
		}
		return info.ID, s.call(ctx, "sentinel/resume", params, nil)
	})
}
