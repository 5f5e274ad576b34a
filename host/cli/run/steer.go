package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// steer calls a command on the run that word means.
func (a verbs) steer(ctx context.Context, word, name string, params map[string]any) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	if params == nil {
		params = map[string]any{}
	}
	info, err := a.FindRun(ctx, s, word, false)
	switch {
	case err == nil:
		params["run"] = info.ID
	case abi.CodeOf(err) == abi.NotFound && pausesTriggers[name] && a.Stored(ctx, s, word):
		params["sentinelId"] = word
	default:
		return err
	}
	if err := s.Call(ctx, name, params, &info); err != nil {
		return err
	}
	return a.ShowChanged(info)
}

// pausesTriggers are the commands that apply to a sentinel's triggers if it has no
// run.
var pausesTriggers = map[string]bool{"sentinel/pause": true, "sentinel/resume": true}

// stopCommand returns when the run and everything that it started have ended.
func (a verbs) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stop RUN|NAME", Short: "Stop a run and everything it started",
		Example: "  sentinel stop nightly\n  sentinel stop 3f9a01bc",
		Args:    app.ExactArgs("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steer(cmd.Context(), args[0], "sentinel/stop", nil)
		},
	}
}

// pauseCommand returns when the pause is durable; the active step continues.
func (a verbs) pauseCommand() *cobra.Command {
	var length, until string
	c := &cobra.Command{
		Use: "pause RUN|NAME", Short: "Pause a run at its next step; of a sentinel without one, its triggers", Args: app.ExactArgs("RUN or NAME"),
		Long: "Pauses a run at its next step, until `sentinel resume`. Of a sentinel without an active run it pauses the\n" +
			"triggers. With --for or --until it pauses the triggers of the sentinel NAME, also beside an active run; the\n" +
			"pause ends by itself at that time, or at the next start of the server if that is later.",
		Example: "  sentinel pause 3f9a01bc\n  sentinel pause nightly --for 7d\n  sentinel pause nightly --until monday",
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := a.pauseEnd(length, until)
			if err != nil {
				return err
			}
			if end.IsZero() {
				return a.steer(cmd.Context(), args[0], "sentinel/pause", nil)
			}
			return a.pauseUntil(cmd.Context(), args[0], end)
		},
	}
	c.Flags().StringVar(&length, "for", "", "pause the triggers of the sentinel for this long, such as 2h or 7d")
	c.Flags().StringVar(&until, "until", "", "pause the triggers of the sentinel until a day or time, such as tomorrow, monday or 2026-01-31T09:30")
	return c
}

// pauseEnd reads --for and --until. The zero time is neither.
func (a verbs) pauseEnd(length, until string) (time.Time, error) {
	switch {
	case length != "" && until != "":
		return time.Time{}, app.NewUsageError("--for and --until exclude each other", "")
	case length != "":
		d, err := app.Length("--for", length)
		return a.Env.Now().Add(d), err
	case until != "":
		return a.Future("--until", until)
	}
	return time.Time{}, nil
}

// pauseUntil pauses the triggers of a sentinel until a time.
func (a verbs) pauseUntil(ctx context.Context, name string, until time.Time) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	if !a.Stored(ctx, s, name) {
		if err := a.Unstored(s, name); err != nil {
			return err
		}
		return app.NotFound("--for and --until pause the triggers of a stored sentinel; `sentinel list` shows them", "no stored sentinel %q", name)
	}
	var info runtime.RunInfo
	if err := s.Call(ctx, "sentinel/pause", map[string]any{"sentinelId": name, "until": until.UTC().Format(time.RFC3339Nano)}, &info); err != nil {
		return err
	}
	return a.ShowChanged(info)
}

// resumeCommand has the flags of run, because it may execute the run here.
func (a verbs) resumeCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "resume RUN|NAME", Short: "Resume a paused run, paused triggers, or a run whose process ended",
		Example: "  sentinel resume 3f9a01bc\n  sentinel resume nightly",

		Long: "A run that another process executes continues there. Any other is continued here,\n" +
			"as `sentinel run --resume` does, with --workspace DIR in that folder from now on.",
		Args: app.ExactArgs("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.resume = args[0]
			if err := f.check(); err != nil {
				return err
			}
			return a.resume(cmd.Context(), args[0], &f)
		},
	}
	f.hostFlags(c.Flags())
	return c
}

// resume resumes a run in the process that executes runs, or here, and the triggers of a
// sentinel that is named.
func (a verbs) resume(ctx context.Context, word string, f *runFlags) error {
	f.movesTo = a.MovesTo()
	return a.inRunProcess(ctx, f, func(s *app.Session) error {
		info, err := a.FindRun(ctx, s, word, false)
		if abi.CodeOf(err) == abi.NotFound && a.Stored(ctx, s, word) {
			return a.resumeTriggers(ctx, s, word)
		}
		if err != nil {
			return err
		}
		paused := string(info.Sentinel) == word && a.TriggersPaused(ctx, s, word)
		if s.Process != nil {
			if paused {
				if err := a.resumeTriggers(ctx, s, word); err != nil {
					return err
				}
			}
			a.Info("no process executes runs, so this one continues it")
			return a.resumeHere(ctx, s, info, f)
		}
		params, _, err := f.resumption(info.ID, a.User())
		if err != nil {
			return err
		}
		if paused { // the name of a sentinel is both: its triggers, and its run if that is paused too
			delete(params, "run")
			params["sentinelId"] = word
		}
		if err := s.Call(ctx, "sentinel/resume", params, &info); err != nil {
			return err
		}
		return a.ShowChanged(info)
	})
}

// resumeTriggers resumes the triggers of a sentinel. Their state is in the store, so it
// needs no server.
func (a verbs) resumeTriggers(ctx context.Context, s *app.Session, name string) error {
	var info runtime.RunInfo
	if err := s.Call(ctx, "sentinel/resume", map[string]any{"sentinelId": name}, &info); err != nil {
		return err
	}
	return a.ShowChanged(info)
}

// resumption returns the parameters of sentinel/resume, and whether they change
// anything of the run. user is who resumes it.
func (f *runFlags) resumption(id sentinels.RunID, user string) (params map[string]any, changes bool, err error) {
	more, err := f.limits.extension()
	if err != nil {
		return nil, false, err
	}
	params = map[string]any{"run": id, "by": user}
	for name, v := range map[string]any{
		"maxIterations": more.Iterations, "timeoutMs": more.TimeoutMs, "budgetUsd": more.CostUSD,
		"budgetTokens": more.Tokens, "budgetCalls": more.Calls, "onInterrupt": f.onInterrupt, "comment": f.comment, "workspace": f.movesTo,
	} {
		if fmt.Sprint(v) != "0" && v != "" {
			params[name], changes = v, true
		}
	}
	return params, changes, nil
}

// decideCommand checks the words before it looks for a process, so that a mistyped
// decision is reported also when no process answers.
func (a verbs) decideCommand() *cobra.Command {
	var result, comment, by, digest, commit string
	verdicts := []string{"retry", "skip", "fail", "approve", "reject"}
	ofTickets := []string{"release", "accept", "hold", "reject"}
	c := &cobra.Command{
		Use: "decide RUN|TICKET [QUESTION] DECISION", Short: "Decide what a run or ticket waits for",
		Example: "  sentinel decide nightly approve\n  sentinel decide 3f9a01bc '1!1' retry --comment 'the upload is idempotent'\n  sentinel decide T-12 accept",

		Long: "QUESTION is what is answered, as `sentinel status RUN` and `sentinel inbox` show it: if the run asks\n" +
			"something else by now, the decision is refused. It may be left out when only one decision is pending;\n" +
			"then what the run asks now is answered, and printed. The name of the call is taken too: 0!1 is the\n" +
			"first host call of step 0, 0!0 the step as a whole.\n\n" +
			"approve continues the run; reject fails the step with the error denied, which its onError may\n" +
			"handle. After a crash, retry makes the call again, skip treats it as done and fail as failed.\n\n" +
			"The decisions about a ticket are release (back into the queue), accept (it is done), reject (cancel it)\n" +
			"and hold. `sentinel inbox` lists everything that waits.",
		Args: app.RangeArgs(2, 3, "RUN", "the decision"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{"verdict": args[len(args)-1], "by": by}
			if len(args) == 3 {
				params["call"] = args[1]
			}
			if by == "" {
				params["by"] = a.User()
			}
			verdict := args[len(args)-1]
			if !slices.Contains(verdicts, verdict) && !slices.Contains(ofTickets, verdict) {
				return app.NewUsageError(fmt.Sprintf("invalid decision %q", verdict), "the decisions are "+strings.Join(verdicts, ", ")+"; about tickets "+strings.Join(ofTickets, ", "))
			}
			if comment != "" {
				params["comment"] = comment
			}
			raw, err := a.JSONFlag("--result", result)
			if err != nil {
				return err
			}
			if raw != nil {
				if args[len(args)-1] != "skip" {
					return app.NewUsageError("--result needs skip: it replaces the result of the call", "")
				}
				params["result"] = raw
			}
			for flag, looked := range map[string]string{app.DigestFlag: digest, "verified-commit": commit} {
				if looked == "" {
					continue
				}
				if len(args) != 2 || !slices.Contains(ofTickets, verdict) {
					return app.NewUsageError("--"+flag+" needs a decision about a ticket", "")
				}
				params[strings.ReplaceAll(flag, "-", "_")] = looked
			}
			if len(args) == 2 && slices.Contains(ofTickets, verdict) {
				return a.decideTicket(cmd.Context(), args[0], params)
			}
			return a.decide(cmd.Context(), args[0], params)
		},
	}
	c.Flags().StringVar(&result, "result", "", "with skip: the result of the call, JSON or @FILE")
	c.Flags().StringVar(&comment, "comment", "", "why, for the record")
	c.Flags().StringVar(&by, "by", "", "who decides (default: your user name)")
	c.Flags().StringVar(&digest, app.DigestFlag, "", "of a ticket's criteria that you looked at, as the inbox prints it (default: those that are printed now)")
	c.Flags().StringVar(&commit, "verified-commit", "", "of a ticket's work that you looked at, as the inbox prints it (default: the one that is verified now)")
	return c
}

// questionName matches names of questions, which names of calls are not.
var questionName = lazyregexp.New(`^[0-9a-f]{12}$`)

// decide sends the decision to the process that executes the run, or writes it to the
// journal, where a resume finds it.
func (a verbs) decide(ctx context.Context, word string, params map[string]any) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	info, err := a.FindRun(ctx, s, word, false)
	if err != nil {
		return err
	}
	params["run"] = info.ID
	word, _ = params["call"].(string)
	call := word
	for _, q := range info.Decisions {
		// What is asked now is what is answered, so that a second answer is not taken for the
		// next question.
		if word == q.Call || word == q.Question && word != "" || word == "" && len(info.Decisions) == 1 {
			call, params["call"], params["question"] = q.Call, q.Call, q.Question
			pending := app.PendingOf(info.ID, q)
			if word != "" {
				continue
			}
			others, err := s.OfOthers(ctx, info.ID, q.Call)
			if err != nil {
				return err
			}
			shown := app.Block(pending.Question())
			if len(others) > 0 {
				shown += "\n" + colourDiff(a.Paint, app.ShowOfOthers(string(info.ID), others))
			}
			if params["verdict"] == "approve" && (pending.IsLong() || len(others) > 0) {
				a.PrintErr("%s\n", shown)
				what := "of more than a screen"
				if len(others) > 0 {
					what = "about what agents or models gave"
				}
				return app.NewUsageError("a question "+what+" is approved by its name: what "+string(output.ShortID(info.ID))+" asks now is above",
					fmt.Sprintf("sentinel decide%s %s %s approve", a.SameStore(), info.ID, output.Quote(cmp.Or(q.Question, q.Call))))
			}
			a.Info("%s", shown)
		}
	}
	if params["question"] == nil && questionName.MatchString(word) {
		params["question"] = word // asked earlier
		delete(params, "call")
	}
	if params["question"] == "" { // of an earlier version of the program
		delete(params, "question")
	}
	if err := s.Call(ctx, "sentinel/decide", params, &info); err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(info)
	}
	a.Info("%s", a.decided(params["verdict"].(string), call, info))
	return nil
}

// decideTicket decides about a ticket. reject is a decision about runs too, so a word
// that is both is refused.
func (a verbs) decideTicket(ctx context.Context, word string, params map[string]any) (err error) {
	s, err := a.Connect(ctx, false)
	if err != nil {
		return err
	}
	verdict := params["verdict"].(string)
	var ticket struct {
		Ticket struct{ ID, State, Title string } `json:"ticket"`
	}
	if verdict == "reject" {
		found := s.Call(ctx, "ticket/get", map[string]any{"id": word}, &ticket)
		_, running := a.FindRun(ctx, s, word, false)
		switch {
		case found != nil && abi.CodeOf(found) != abi.NotFound:
			a.CloseSession(s, &err)
			return found
		case found != nil:
			a.CloseSession(s, &err)
			return errors.Join(err, a.decide(ctx, word, params))
		case running == nil:
			a.CloseSession(s, &err)
			return app.NewUsageError(fmt.Sprintf("%q is a ticket and a run or sentinel", word), "sentinel ticket decide "+word+" reject, or the id of the run")
		}
	}
	defer a.CloseSession(s, &err)
	in := map[string]any{"id": word, "action": verdict}
	for _, name := range []string{"comment", "criteria_digest", "verified_commit"} {
		if value, ok := params[name]; ok {
			in[name] = value
		}
	}
	raw, err := a.DecideTicket(ctx, s, in)
	if err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(raw)
	}
	if err := json.Unmarshal(raw, &ticket); err != nil {
		return err
	}
	a.Info("ticket %s is %s", ticket.Ticket.ID, ticket.Ticket.State)
	return nil
}

// decided says what a decision does to the run and to the step that it is about. A
// rejection does not continue the run: its step gets an error, and if it fails, the run does by the step's onError.
func (a verbs) decided(verdict, call string, info runtime.RunInfo) string {
	path, number, _ := strings.Cut(call, "!")
	step, resume := strings.TrimSpace("step "+path), fmt.Sprintf("`sentinel run%s --resume %s`", a.SameStore(), rootOf(info))
	failure := ""
	switch {
	case verdict == "reject":
		failure = step + " gets the error denied" // approve fails, a model reads that its call is refused
	case verdict == "fail" && number == "0":
		failure = step + " fails"
	case verdict == "fail":
		failure = "the call of " + step + " fails"
	}
	word := map[string]string{"approve": "approved", "reject": "rejected", "retry": "decided to retry", "skip": "decided to skip", "fail": "decided to fail"}[verdict]
	switch {
	case failure != "" && info.Live:
		return fmt.Sprintf("%s: in run %s, %s", word, info.ID, failure)
	case failure != "":
		return fmt.Sprintf("%s: with %s, %s", word, resume, failure)
	case info.Live:
		return fmt.Sprintf("%s; run %s continues", word, info.ID)
	}
	return fmt.Sprintf("%s; %s continues the run", word, resume)
}

// rootOf is the run to resume so that info continues too.
func rootOf(info runtime.RunInfo) string {
	if info.Root != "" {
		return string(info.Root)
	}
	return string(info.ID)
}
