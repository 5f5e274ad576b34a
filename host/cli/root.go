package cli

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host"
)

// globalFlags are understood by every verb.
type globalFlags struct {
	output    string
	workspace string
	state     string
	plugins   string
	trust     []string
	verbose   bool
	quiet     bool
}

// The output formats.
const (
	asTable = "table"
	asJSON  = "json"
	asJSONL = "jsonl"
)

// rootCommand has the verbs in groups, in the order in which a newcomer needs them.
// What cobra says of mistakes is said in our words, with a hint.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sentinel",
		Short: "Run sentinels: durable loops of steps, written as JSON",
		Long: "A sentinel is a loop of steps in a JSON file. A run of one is durable: end the\n" +
			"process anywhere, and `sentinel run --resume RUN` continues where it was.",
		Example:       "  sentinel init\n  sentinel validate .sentinel/sentinels/build-fix.json\n  sentinel run build-fix",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true, DisableDescriptions: false},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			e := &usageError{text: fmt.Sprintf("unknown command %q", args[0]), hint: "sentinel --help lists them"}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				e.hint = fmt.Sprintf("did you mean %q?", near[0])
			}
			return e
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains([]string{asTable, asJSON, asJSONL}, a.flags.output) {
				return &usageError{fmt.Sprintf("invalid --output %q: want table, json or jsonl", a.flags.output), ""}
			}
			return nil
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{cmd.CommandPath() + ": " + err.Error(), cmd.CommandPath() + " --help shows its flags"}
	})
	f := root.PersistentFlags()
	f.StringVarP(&a.flags.output, "output", "o", asTable, "form of what goes to standard output: table, json, jsonl")
	f.StringVar(&a.flags.workspace, "workspace", "", "folder that runs and commands work in (default: the current one)")
	f.StringVar(&a.flags.state, "state", "", "folder of the store (default: state in the nearest .sentinel folder upwards)")
	f.StringVar(&a.flags.plugins, "plugins", "", "folder with further *.wasm step plugins")
	f.StringArrayVar(&a.flags.trust, "trust", nil, "obey files at or below this path, whatever their owners and modes; repeatable (default: trust.paths)")
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, "say more")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "say only what went wrong")
	root.AddGroup(
		&cobra.Group{ID: "write", Title: "Write:"},
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "more", Title: "More:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("write", a.initCommand(), a.validateCommand(), a.schemaCommand(), a.createCommand(), a.updateCommand(), a.deleteCommand(), a.loadCommand(), a.stepCommand(), a.rollbackCommand(),
		a.exportCommand(), a.importCommand(), a.deployCommand())
	add("run", a.serveCommand(), a.runCommand(), a.startCommand(), a.stopCommand(), a.pauseCommand(), a.resumeCommand(), a.retryCommand(), a.forkCommand(), a.decideCommand(), a.emitCommand())
	add("look", a.listCommand(), a.statusCommand(), a.logsCommand(), a.traceCommand(), a.eventsCommand(), a.triggersCommand(), a.showCommand(), a.revisionsCommand(), a.diffCommand())
	add("more", a.execCommand(), a.pluginCommand(), a.configCommand(), a.doctorCommand(), a.recoverCommand(), a.compactCommand(), a.tokenCommand(), a.unitCommand(), a.benchCommand(), a.versionCommand(), a.completionCommand(root))
	root.SetHelpCommandGroupID("more")
	return root
}

// path makes a path of the command line absolute.
func (a *app) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(a.env.Dir, p)
}

// workspace is where runs and commands of this invocation work.
func (a *app) workspace() string {
	switch {
	case a.flags.workspace != "":
		return a.path(a.flags.workspace)
	case filepath.Base(a.served) == host.DirName:
		return filepath.Dir(a.served) // the project that it belongs to
	}
	return a.env.Dir
}

// dir is the folder that is served, else the nearest .sentinel folder.
func (a *app) dir() string {
	if a.served != "" {
		return a.served
	}
	return host.FindDir(a.workspace())
}

// state is the folder of the store.
func (a *app) state() string {
	if a.flags.state != "" {
		return a.path(a.flags.state)
	}
	return filepath.Join(a.dir(), "state")
}

// sameStore is the flags that lead a later invocation from the same folder to the
// same store.
func (a *app) sameStore() string {
	s := ""
	if a.flags.workspace != "" {
		s += " --workspace " + quoted(a.flags.workspace)
	}
	if a.flags.state != "" {
		s += " --state " + quoted(a.flags.state)
	}
	if a.flags.plugins != "" {
		s += " --plugins " + quoted(a.flags.plugins)
	}
	for _, p := range a.flags.trust {
		s += " --trust " + quoted(p)
	}
	return s
}
