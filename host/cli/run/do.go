package run

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// doName is the name of the sentinel that `sentinel do` runs. A file of the project with
// this name takes the place of the one that is part of the program.
const doName = "do"

// doFile is the name of its definition in the program, where a source has that of a file.
const doFile = "do.json (part of the program)"

// newest is the value of --continue and --undo without a run.
const newest = "newest"

// doFlags are the flags of do.
type doFlags struct {
	runFlags
	yolo, strict bool
	model        string
	maxUSD       float64
	timeout      time.Duration
	maxTurns     int
	checks       []string
	noCheck      bool
	attempts     int
	cont, undo   string
	force        bool
}

// doCommand has a model work on a task in the current folder.
func (a verbs) doCommand() *cobra.Command {
	var f doFlags
	c := &cobra.Command{
		Use: "do TASK", Short: "Have a model work on a task in this folder",
		Long: "A model works on TASK with the files and programs of the folder. Before the first write and the first\n" +
			"shell command of each kind you see what it would do, and decide; without a terminal these are refused.\n" +
			"Where the answer always is offered, the kind is not asked about in this folder any more, for tasks that\n" +
			"begin with the sentinel of the program: `sentinel trust --calls` lists these kinds, --forget KIND removes one.\n" +
			"The run begins and ends with a checkpoint of the files, so that --undo can revert its changes, and the\n" +
			"work is checked by the project's own build and tests, or by --check. TASK may be -, or @FILE.\n\n" +
			"A task may outgrow the window of its model: results of tools are then left out, and the model goes on from\n" +
			"a summary; `sentinel trace` shows where. A window that the program does not know is set in models.known.\n\n" +
			"--undo removes only what did not exist before. It restores files up to 10 MB, and of those that git\n" +
			"ignores the first 3,000 up to 1 MB and 64 MB in all, with mode and owner. Of other files it knows only that\n" +
			"they exist: a change of one is listed as not covered. A .git is left as it is. Each change in the folder\n" +
			"between the begin and the end of the task counts as its change, also one of yours: it is listed by name,\n" +
			"and reverted. What an undo replaces or removes is kept, and --undo of the undo brings it back. What was\n" +
			"changed after the task is a conflict: then nothing is changed, unless --force is given.\n\n" +
			"The sentinel is do: a file .sentinel/sentinels/do.json takes its place (`sentinel init --template do`), or a\n" +
			"stored sentinel do that is of a person or accepted. The first line says so.",
		Example: "  sentinel do 'Make the parser accept empty lines, with a test'\n" +
			"  sentinel do --yolo --max-usd 1 --check 'go test ./...' @task.md\n" +
			"  sentinel do --continue 'Now the same for the writer'\n" +
			"  sentinel do --undo 3f9a01bc",
		Args: app.RangeArgs(0, 1, "TASK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			word := ""
			if len(args) > 0 {
				word = args[0]
			}
			if err := f.checkDo(cmd, word); err != nil {
				return err
			}
			if err := a.AskTrust(cmd.Context()); err != nil {
				return err
			}
			switch {
			case f.undo != "":
				return a.undo(cmd.Context(), cmp.Or(word, f.undo), f.force)
			case f.cont != "":
				return a.continueDo(cmd.Context(), word, &f)
			}
			task, err := a.task(word)
			if err != nil {
				return err
			}
			return a.do(cmd.Context(), task, "", &f)
		},
	}
	fs := c.Flags()
	fs.BoolVar(&f.strict, "strict", false, "ask before writes and shell commands; the default")
	fs.BoolVar(&f.yolo, "yolo", false, "ask nothing; budgets, grants and the rules for models hold")
	fs.StringVar(&f.model, "model", "auto", "model that works, provider/name")
	fs.Float64Var(&f.maxUSD, "max-usd", 0, "most money to spend; with --continue, on what is left of the run")
	fs.DurationVar(&f.timeout, "timeout", 0, "most time, such as 30m; questions count")
	fs.IntVar(&f.maxTurns, "max-turns", 100, "most replies of the model")
	fs.StringArrayVar(&f.checks, "check", nil, "shell line that checks the work, in place of the project's build and tests; repeatable")
	fs.BoolVar(&f.noCheck, "no-check", false, "check nothing")
	fs.IntVar(&f.attempts, "attempts", 3, "how often the work is checked before the run ends")
	fs.StringVar(&f.cont, "continue", "", "continue the newest task of this folder, or --continue=RUN, with TASK as the next one")
	fs.StringVar(&f.undo, "undo", "", "revert what the newest task of this folder changed, or --undo=RUN")
	fs.BoolVar(&f.force, "force", false, "with --undo: also files that were changed since; their present content is kept")
	fs.StringVar(&f.record, "record", "", "write what models answer to this new cassette file")
	fs.StringVar(&f.replay, "replay", "", "answer from this cassette file in place of models")
	fs.Lookup("continue").NoOptDefVal, fs.Lookup("undo").NoOptDefVal = newest, newest
	return c
}

// checkDo rejects combinations of flags without a meaning.
func (f *doFlags) checkDo(cmd *cobra.Command, word string) error {
	given := cmd.Flags().Changed
	switch {
	case f.yolo && f.strict:
		return app.NewUsageError("--yolo and --strict exclude each other", "")
	case f.noCheck && len(f.checks) > 0:
		return app.NewUsageError("--check and --no-check exclude each other", "")
	case f.undo != "" && f.cont != "":
		return app.NewUsageError("--undo and --continue exclude each other", "")
	case f.undo == "" && f.force:
		return app.NewUsageError("--force needs --undo", "")
	case f.undo != "" && f.undo != newest && word != "":
		return app.NewUsageError(fmt.Sprintf("do: unexpected argument %q", word), "--undo takes one run")
	case given("max-usd") && !(f.maxUSD > 0 && f.maxUSD < 1e9):
		return app.NewUsageError("invalid --max-usd: want an amount above 0", "such as --max-usd 2.50")
	case given("timeout") && f.timeout < time.Second:
		return app.NewUsageError("invalid --timeout: want at least 1s", "such as --timeout 30m")
	case f.maxTurns < 1 || f.attempts < 1:
		return app.NewUsageError("--max-turns and --attempts want at least 1", "")
	}
	for _, line := range f.checks {
		if strings.TrimSpace(line) == "" {
			return app.NewUsageError("--check is empty", "such as --check 'go test ./...'")
		}
	}
	return f.check()
}

// task reads the task: the argument, - for standard input, or @FILE.
func (a verbs) task(word string) (string, error) {
	if word == "-" {
		word = "@-"
	}
	text, err := a.FileArgument(word)
	if err != nil {
		return "", fmt.Errorf("read the task: %w", err)
	}
	if strings.TrimSpace(text) == "" {
		return "", app.NewUsageError("do: TASK is missing", "such as: sentinel do 'Repair the failing test'")
	}
	return text, nil
}

// do starts a run with a task and follows it. previous is what earlier runs did.
func (a verbs) do(ctx context.Context, task, previous string, f *doFlags) error {
	if err := a.checkFolder(); err != nil {
		return err
	}
	return a.inRunProcess(ctx, &f.runFlags, func(s *app.Session) error {
		src, err := a.doSource(ctx, s)
		if err != nil {
			return err
		}
		if err := a.checkModel(ctx, s, f); err != nil {
			return err
		}
		params, err := a.doParams(ctx, s, src, f)
		if err != nil {
			return err
		}
		params["inputs"] = f.doInputs(a, task, previous)
		return a.followDo(ctx, s, a.always(ctx, s, src), func() (sentinels.RunID, error) {
			var out struct{ Run sentinels.RunID }
			err := s.Call(ctx, "sentinel/start", params, &out)
			return out.Run, app.NameFile(err, src)
		})
	})
}

// checkFolder refuses the root and the home folder: a model would work on everything in
// them. --workspace names them on purpose.
func (a verbs) checkFolder() error {
	dir := a.Workspace()
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return app.NotFound("", "no folder %q", dir)
	case !info.IsDir():
		return app.NewUsageError(fmt.Sprintf("%q is not a folder", dir), "--workspace names the folder of a project")
	case a.Flags.Workspace != "":
		return nil
	}
	for _, kept := range []string{"/", a.Env.Getenv("HOME")} {
		if kept != "" && sameFile(dir, kept) {
			return app.NewUsageError(fmt.Sprintf("%s is not the folder of a project: a model would work on all of it", dir), "change to the folder of the project, or name one with --workspace DIR")
		}
	}
	return nil
}

func sameFile(x, y string) bool {
	a, errA := os.Stat(x)
	b, errB := os.Stat(y)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// doSource returns the definition: a file of the project, the one that a server has stored,
// or the one that is part of the program. The first two are named because they decide what
// happens. The text is started as a definition of the user, without the bound of a stored
// one, so a stored one that no person has accepted is not used.
func (a verbs) doSource(ctx context.Context, s *app.Session) (src *app.Source, err error) {
	if !s.ByURL {
		src, err = a.ProjectSource(doName)
	}
	if src == nil && err == nil {
		src, err = a.StoredSource(ctx, s, doName)
	}
	if err == nil && src != nil && src.Unaccepted {
		a.Info("the stored sentinel do, revision %d, comes from a model or an agent and is not accepted: runs the one of the program",
			src.Revision)
		src = nil
	}
	switch {
	case err != nil:
		return nil, err
	case src == nil:
		text, _ := sentinels.ShippedText(doName)
		return &app.Source{Text: text, File: doFile, Base: a.Workspace()}, nil
	case src.File != "":
		a.Info("runs %s in place of the sentinel do of the program", src.File)
	default:
		a.Info("runs the stored sentinel do, revision %d, in place of the one of the program", src.Revision)
	}
	return src, nil
}

// checkModel returns the error of a model that cannot be asked, and of one without a price
// if there is a budget in money, before anything starts.
func (a verbs) checkModel(ctx context.Context, s *app.Session, f *doFlags) error {
	var m struct {
		Provider, Model string
		Priced          bool
	}
	if err := s.Call(ctx, "ai/model", map[string]any{"model": f.model}, &m); err != nil {
		if e := abi.As(err); e != nil && f.model == "auto" {
			named := *e
			named.Hint = strings.TrimPrefix(e.Hint+"; --model PROVIDER/NAME names a model", "; ")
			return &named
		}
		return err
	}
	if f.maxUSD > 0 && !m.Priced {
		return &abi.Error{
			Code: abi.BadFields, Message: fmt.Sprintf("--max-usd: the price of model %s/%s is not known", m.Provider, m.Model),
			Hint: "add it to models.known in the configuration with its price per million tokens, or limit --max-turns or --timeout instead",
		}
	}
	return nil
}

// doParams returns the parameters of the start, with the limits of the flags in the
// definition.
func (a verbs) doParams(ctx context.Context, s *app.Session, src *app.Source, f *doFlags) (map[string]any, error) {
	def, problems := app.DecodeAnyStep(src)
	if len(problems) > 0 {
		if err := a.ValidateWith(ctx, s, src); err != nil {
			return nil, err
		}
		return nil, problems.Err()
	}
	if err := a.ValidateWith(ctx, s, src); err != nil {
		return nil, err
	}
	if f.maxUSD > 0 {
		def.Budget.CostUSD = f.maxUSD
	}
	if f.timeout > 0 {
		def.Safety.TimeoutMs = f.timeout.Milliseconds()
	}
	params := map[string]any{"definition": string(sentinels.Encode(def))}
	src.PlaceBeside(params)
	if !s.ByURL {
		params["workspace"] = a.Workspace()
	} else if a.Flags.Workspace != "" {
		params["workspace"] = a.Flags.Workspace
	}
	return params, nil
}

// doInputs returns the inputs of the sentinel. Without a terminal nothing can be asked.
func (f *doFlags) doInputs(a verbs, task, previous string) map[string]any {
	mode := "ask"
	switch {
	case f.yolo:
		mode = "off"
	case !a.CanAsk():
		mode = "deny"
	}
	checks := f.checks
	if checks == nil {
		checks = []string{}
	}
	return map[string]any{
		"task": task, "previous": previous, "mode": mode, "model": f.model, "checks": checks, "verify": !f.noCheck,
		"attempts": f.attempts, "maxTurns": f.maxTurns,
	}
}

// followDo begins a run, follows it and shows what it did. The terminal is read from the
// beginning, so that no question is answered by what was typed before it.
func (a verbs) followDo(ctx context.Context, s *app.Session, w *always, begin func() (sentinels.RunID, error)) error {
	if a.CanAsk() {
		a.TypedLines()
	}
	out, err := a.followAs(ctx, s, begin, true, w)
	if err != nil {
		return err
	}
	return a.doEnded(ctx, s, out)
}
