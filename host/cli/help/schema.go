package help

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func (a verbs) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [step TYPE | trigger KIND | event KIND | command NAME | result]",
		Short: "Write the JSON Schema of definitions, or explain a part of it",
		Long: "The schema has the fields of every step type that is installed, those of --plugins too, the\n" +
			"options of every kind of trigger, and the shapes of outputs. With a part it is explained: its\n" +
			"fields and its output, $event of a kind of trigger or of an event of runs, or $result of onFailure and\n" +
			"finally. -o json writes the part's own schema.",
		Example: "  sentinel schema > .sentinel/schema.json\n  sentinel schema step shell\n  sentinel schema trigger file\n" +
			"  sentinel schema event webhook\n  sentinel schema event sentinel:build-fix:failed\n  sentinel schema command code/read",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 2:
				return app.NewUsageError(fmt.Sprintf("sentinel schema: unexpected argument %q", args[2]), "")
			case len(args) > 0 && !slices.Contains(parts, args[0]):
				return app.NewUsageError(fmt.Sprintf("sentinel schema: unknown part %q", args[0]), "want "+strings.Join(parts, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.Scratch(cmd.Context())
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			if len(args) == 0 {
				return a.Out.JSON(s.Process.Host().Schema()) // compact: its readers are editors and models
			}
			name := ""
			if len(args) == 2 {
				name = args[1]
			}
			rt := s.Process.Host().Runtime()
			switch args[0] {
			case "result":
				if name != "" {
					return app.NewUsageError(fmt.Sprintf("sentinel schema result: unexpected argument %q", name), "")
				}
				return a.resultSchema()
			case "step":
				return a.stepSchema(rt, name)
			case "command":
				return a.commandSchema(cmd.Context(), s, name)
			}
			return a.triggerSchema(rt, args[0], name)
		},
	}
}

// parts are the parts of the schema that can be explained.
var parts = []string{"step", "trigger", "event", "command", "result"}

// choose returns the index of a name, or an error that lists the names.
func choose(what, name string, known []string) (int, error) {
	if i := slices.Index(known, name); i >= 0 {
		return i, nil
	}
	if name == "" {
		return 0, app.NewUsageError("sentinel schema "+what+": a name is missing", "one of "+strings.Join(known, ", "))
	}
	hint := "known: " + strings.Join(known, ", ")
	if near := sentinels.Suggest(name, known); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return 0, app.NotFound(hint, "unknown %s %q", what, name)
}

// stepSchema explains a step type.
func (a verbs) stepSchema(rt *runtime.Runtime, name string) error {
	types := rt.Types().Types()
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	i, err := choose("step", name, names)
	if err != nil {
		return err
	}
	spec, _ := rt.Types().Lookup(types[i])
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(map[string]any{
			"type": spec.Type, "summary": spec.Summary, "infer": spec.Infer, "aliases": spec.Aliases, "fields": spec.Fields, "output": spec.Output,
		})
	}
	var page output.Page
	page.Printf("step type %s\n%s\n", spec.Type, spec.Summary)
	if len(spec.Infer) > 0 {
		page.Printf("A step without type that has %s is of this type.\n", strings.Join(spec.Infer, " or "))
	}
	for _, alias := range slices.Sorted(maps.Keys(spec.Aliases)) {
		page.Printf("%s is another name of %s.\n", alias, spec.Aliases[alias])
	}
	schema, other := stepOutput(spec)
	page.Printf("\nfields (those of every step: `sentinel help steps`):\n")
	if err := a.explain(&page, spec.Fields, " "); err != nil {
		return err
	}
	if other != "" {
		return a.Out.Printf("\noutput: %s\n", other)
	}
	page = output.Page{}
	page.Printf("\noutput:\n")
	return a.explain(&page, schema, "")
}

// explain shows a page, and the members of a schema below it.
func (a verbs) explain(page *output.Page, schema json.RawMessage, prefix string) error {
	rows, err := a.MemberRows(schema, prefix)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		rows = []output.Row{{"  any value"}}
	}
	if err := a.Out.Write(page.Text()); err != nil {
		return err
	}
	return a.Pairs(rows)
}

// notDescribed is what stepOutput says of the output of a plugin that does not describe it.
const notDescribed = "not described by its plugin"

// stepOutput returns the schema of a step's output, or what to say in its place.
func stepOutput(spec *sentinels.TypeSpec) (schema json.RawMessage, other string) {
	if command := spec.Command(); command != "" {
		return nil, fmt.Sprintf("that of %s: `sentinel schema command %[1]s`", command)
	}
	for _, m := range spec.Marks() {
		if m.Mark == abi.MarkParams {
			return nil, "the result of the command: `sentinel schema command NAME`"
		}
	}
	if len(spec.Output) == 0 {
		return nil, notDescribed
	}
	return spec.Output, ""
}

// dataOnTop says what holds for $event of every kind.
const dataOnTop = "Members of data are members of $event too, except those named as the event's own fields: $event.x is $event.data.x, $event.id is not $event.data.id."

// triggerSchema explains a kind of trigger, or only its event.
func (a verbs) triggerSchema(rt *runtime.Runtime, part, name string) error {
	if part == "event" && sentinels.IsRunEvent(name) {
		return a.runEventSchema(name)
	}
	kinds := rt.DecodeOptions("").Triggers
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
		if slices.Contains(k.Aliases, name) {
			name = k.Name
		}
	}
	i, err := choose(part, name, names)
	if err != nil {
		return err
	}
	k := kinds[i]
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(k.Schema())
	}
	if part == "event" {
		return a.Out.Printf("$event: %s.\n%s\n", k.Event, dataOnTop)
	}
	var page output.Page
	page.Printf("trigger %s\nFires %s.\n", k.Name, k.Fires)
	if len(k.Aliases) > 0 {
		page.Printf("%s is another name of it.\n", strings.Join(k.Aliases, ", "))
	}
	page.Printf("$event: %s.\n%s\n\noptions:\n", k.Event, dataOnTop)
	return a.explain(&page, k.Schema(), " ")
}

// resultSchema explains $result.
func (a verbs) resultSchema() error {
	schema := json.RawMessage(sentinels.ResultSchema)
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(schema)
	}
	var page output.Page
	page.Printf("$result, in the steps of onFailure and finally: how the run, the loop or the group has ended\n" +
		"error is null if it is completed: write $result.error?.message.\n\nfields:\n")
	return a.explain(&page, schema, "")
}

// runEventSchema explains the events of runs that match a name or pattern.
func (a verbs) runEventSchema(name string) error {
	if problem, hint := sentinels.CheckRunPattern(name); problem != "" {
		return app.NotFound(hint, "unknown event %q: %s", name, problem)
	}
	schema := sentinels.RunEventSchema(name)
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(schema)
	}
	var page output.Page
	page.Printf("event of a run; the last part of its name is one of %s\n", strings.Join(sentinels.RunEventWords(), " "))
	page.Printf("$event: name %s, id, source engine/ID, time, data.\n%s\n\ndata:\n", name, dataOnTop)
	return a.explain(&page, schema, "")
}

// commandSchema explains a command of this process.
func (a verbs) commandSchema(ctx context.Context, s *app.Session, name string) error {
	list, err := s.Commands(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	i, err := choose("command", name, names)
	if err != nil {
		return err
	}
	return a.DescribeCommand(list[i])
}
