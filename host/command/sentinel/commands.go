package sentinel

import (
	"reflect"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options say what the commands steer.
type Options struct {
	Runtime *runtime.Runtime // required
	// Workspace is where a run works that neither the call nor the definition
	// places. Default: the caller's workspace.
	Workspace string
	// Dir is the folder whose sentinels, recipes and plugins travel with what
	// needs them. Default: .sentinel in the caller's workspace.
	Dir string
	// Plugins is a folder with further plugins. Default none.
	Plugins string
	// Definitions is called before a definition is edited and after, so that its
	// file and the store say the same. Default nil: definitions live in no files.
	Definitions Definitions
	// Lookup returns a command, for the aliases of its parameters. Default: commands have
	// none.
	Lookup func(name string) (command.Command, bool)
	// Gate reports whether a sentinel is a gate of a person that the work of agents has to pass, or a part of one, so that
	// only persons pause, stop, change or delete it. Default: none is.
	Gate func(sentinels.ID) bool
	// Rules decide which files callers that are held to rules of files may name.
	Rules command.FileRules
	// BaseURL returns where the API of this process listens, "" while it does not. Default: it does not.
	BaseURL func() string
	// Trust decides which files are obeyed. Default: those that are the user's or
	// root's alone, with the folders above.
	Trust *trust.Policy
}

type family struct {
	rt  *runtime.Runtime
	opt Options
}

// Commands returns the family sentinel/*. All of it is private: what a model
// may steer is for the author of its step to say.
func Commands(opt Options) []command.Command {
	f := family{opt.Runtime, opt}
	read := command.Options{Effect: command.Reads, Idempotent: true, Private: true}
	await := read
	await.Waits = command.Always
	defines := []string{"definition", "definitions", "steps", "loop", "safety", "bundle", "file", "path", "step", "params"}
	write := command.Options{Effect: command.Configures, Idempotent: true, Defines: defines}
	edit := command.Options{Effect: command.Configures, Defines: defines}
	start := command.Options{Effect: command.Executes, Idempotent: true, KeyParam: "key", Defines: defines}
	run := start
	run.AsRun = true
	// The work of others: no pattern gives it.
	hold := command.Options{Effect: command.Executes, Idempotent: true, Private: true}
	end := command.Options{Effect: command.Executes, Private: true}
	remove := command.Options{Effect: command.Configures, Private: true}
	decide := command.Options{Effect: command.Decides}
	trace := read
	trace.Recursive = []reflect.Type{reflect.TypeFor[runtime.TraceStep]()}
	return []command.Command{
		command.New("sentinel/create", "Define a sentinel, from a file or from its parts.", write, f.create),
		command.New("sentinel/validate", "Check a definition, and show every problem with its position.", read, f.validate),
		command.New("sentinel/load", "Define the sentinels of a file or folder, or of the project.", write, f.load),
		command.New("sentinel/export", "Show the newest definition of a sentinel, or pack sentinels into a bundle.", read, f.export),
		command.New("sentinel/import", "Take in a bundle of sentinels, or a definition: all of it or nothing.", write, f.importBundle),
		command.New("sentinel/deploy", "Put a sentinel and what it needs into the folder of another project.", write, f.deploy),
		command.New("sentinel/start", "Start a run of a defined sentinel, or of a definition that comes along.", start, f.start),
		command.New("sentinel/run", "Start a run and wait for its end. That of a step is a child of the step's run.", run, f.run),
		command.New("sentinel/save", "Store a definition, or that of a run, under a name.", write, f.saveAs),
		command.New("sentinel/stop", "Stop a run and everything it started.", end, f.stop),
		command.New("sentinel/pause", "Hold a run back at its next step; of a sentinel without one, its triggers.", hold, f.pause),
		command.New("sentinel/resume", "Resume a paused run, paused triggers, or a run whose process ended.", command.Options{Effect: command.Executes}, f.resume),
		command.New("sentinel/retry", "Begin a run's work again in a new run, from its start or at a step.", start, f.retry),
		command.New("sentinel/fork", "Begin an iteration of a run again in a new run, with a step changed if wanted.", start, f.fork),
		command.New("sentinel/decide", "Answer what a run waits for: an approval, or a call that a crash left in doubt.", decide, f.decide),
		command.New("sentinel/status", "Show where a run, or the newest run of a sentinel, stands.", read, f.status),
		command.New("sentinel/result", "Show how a run, or the newest run of a sentinel, ended.", read, f.result),
		command.New("sentinel/await", "Wait for the end of a run, or of the newest run of a sentinel, and show how it ended.", await, f.await),
		command.New("sentinel/list", "List defined sentinels and runs.", read, f.list),
		command.New("sentinel/triggers", "Show what triggers wait for, and what became of what they fired.", read, f.triggers),
		command.New("sentinel/trace", "Show what a run did: iterations, steps, attempts and host calls.", trace, f.trace),
		command.New("sentinel/update", "Put another definition in the place of a sentinel's.", write, f.update),
		command.New("sentinel/delete", "Delete a sentinel; its runs go on, its revisions stay readable.", remove, f.remove),
		command.New("sentinel/revisions", "List the revisions of a sentinel: when, by whom, why.", read, f.revisions),
		command.New("sentinel/revision", "Show one revision of a sentinel.", read, f.revision),
		command.New("sentinel/diff", "Show what two revisions of a sentinel do not have in common.", read, f.diff),
		command.New("sentinel/rollback", "Restore the content of an earlier revision, as a new one.", write, f.rollback),
		command.New("sentinel/accept", "Let the runs of a sentinel that a model or an agent made call all commands that it names.", decide, f.accept),
		command.New("sentinel/step/add", "Add a step; runs use it from their next iteration on.", edit, f.stepAdd),
		command.New("sentinel/step/update", "Change a step; runs use it from their next iteration on.", write, f.stepUpdate),
		command.New("sentinel/step/remove", "Remove a step; runs do without it from their next iteration on.", edit, f.stepRemove),
		command.New("sentinel/step/list", "List the steps of a sentinel or a run, with their addresses and how they stand.", read, f.stepList),
	}
}
