package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// doRun returns the run that a word means: the newest of this folder, or one by a part of
// its id.
func (a verbs) doRun(ctx context.Context, s *app.Session, word string) (runtime.RunInfo, error) {
	if word != newest {
		return a.FindRun(ctx, s, word, true)
	}
	var found runtime.RunInfo
	err := s.EachRun(ctx, map[string]any{"sentinelId": doName}, func(r runtime.RunInfo) bool {
		if s.ByURL || sameFile(r.Workspace, a.Workspace()) {
			found = r
		}
		return found.ID == ""
	})
	if err == nil && found.ID == "" {
		err = app.NotFound("`sentinel do TASK` begins one", "no task was begun in this folder")
	}
	return found, err
}

// continueDo resumes a run that has not ended, or begins one that knows what the last ones
// did.
func (a verbs) continueDo(ctx context.Context, word string, f *doFlags) error {
	task := ""
	if word != "" {
		var err error
		if task, err = a.task(word); err != nil {
			return err
		}
	}
	if err := a.checkFolder(); err != nil {
		return err
	}
	var previous string
	resumed := false
	err := a.inRunProcess(ctx, &f.runFlags, func(s *app.Session) error {
		info, err := a.doRun(ctx, s, f.cont)
		if err != nil {
			return err
		}
		if info.Status.Final() {
			if task == "" {
				return app.NewUsageError(fmt.Sprintf("run %s has ended: %s; what is the next task?", info.ID, info.Status), "sentinel do --continue 'NEXT TASK'")
			}
			previous, err = a.previous(ctx, s, info)
			return err
		}
		if task != "" {
			return &abi.Error{
				Code: abi.Conflict, Message: fmt.Sprintf("run %s has not ended: %s", info.ID, info.Status),
				Hint: "sentinel do --continue continues it, without a new task; `sentinel stop " + string(info.ID) + "` ends it",
			}
		}
		resumed = true
		return a.resumeDo(ctx, s, info, f)
	})
	if err != nil || resumed {
		return err
	}
	return a.do(ctx, task, previous, f)
}

// resumeDo continues a run that was interrupted, waits or is at a limit, with more room.
func (a verbs) resumeDo(ctx context.Context, s *app.Session, info runtime.RunInfo, f *doFlags) error {
	more := runFlags{}
	if f.maxUSD > 0 {
		more.limits.usd = strconv.FormatFloat(f.maxUSD, 'f', -1, 64)
	}
	if f.timeout > 0 {
		more.limits.timeout = f.timeout.String()
	}
	params, changes, err := more.resumption(info.ID, a.User())
	if err != nil {
		return err
	}
	return a.followDo(ctx, s, nil, func() (sentinels.RunID, error) {
		if info.Live && info.Status != sentinels.StatusPaused && !changes {
			a.Info("run %s is active", info.ID)
			return info.ID, nil
		}
		return info.ID, s.Call(ctx, "sentinel/resume", params, nil)
	})
}

// Bounds of what a run knows of the runs before it, in bytes: of all, and of one text.
const (
	maxPrevious     = 24 << 10
	maxPreviousText = 6 << 10
)

// previous returns what a run was asked, replied and changed, behind what it knew of the
// runs before it. The oldest part is left out if it is too long.
func (a verbs) previous(ctx context.Context, s *app.Session, info runtime.RunInfo) (string, error) {
	res, err := a.result(ctx, s, info.ID)
	if err != nil {
		return "", err
	}
	var inputs struct{ Task, Previous string }
	for name, to := range map[string]*string{"task": &inputs.Task, "previous": &inputs.Previous} {
		_ = json.Unmarshal(res.Variables[name], to) // another sentinel may have none
	}
	sum, err := a.doSummary(ctx, s, outcome{Result: res})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## Earlier task\n%s\n\n", textcut.Mark(inputs.Task, maxPreviousText))
	if sum.Reply != "" {
		fmt.Fprintf(&b, "## Your reply to it\n%s\n\n", textcut.Mark(sum.Reply, maxPreviousText))
	}
	fmt.Fprintf(&b, "## How it ended\n%s. Checks: %s.\n", sum.Outcome, sum.checked())
	for i, c := range sum.Files {
		if i == 50 {
			fmt.Fprintf(&b, "- and %d more files\n", len(sum.Files)-i)
			break
		}
		fmt.Fprintf(&b, "- %s %s (+%d -%d)\n", c.Change, strconv.Quote(c.Path), c.Added, c.Removed)
	}
	all := strings.TrimSuffix(inputs.Previous, nextTask) + b.String()
	if cut := len(all) - maxPrevious; cut > 0 {
		all = "[earlier tasks are left out]\n" + strings.ToValidUTF8(all[cut:], "")
	}
	return all + nextTask, nil
}

// nextTask ends what is known of earlier runs.
const nextTask = "\nThe files may have changed since. The task now:\n\n"
