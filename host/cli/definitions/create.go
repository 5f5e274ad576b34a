package definitions

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// saved is the result of sentinel/create for each sentinel.
type saved struct {
	SentinelID sentinels.ID       `json:"sentinelId"`
	Name       string             `json:"name"`
	Revision   int                `json:"revision"`
	Hash       string             `json:"hash"`
	Warning    string             `json:"warning,omitempty"`
	Beside     []saved            `json:"beside,omitempty"` // that were stored with it
	Problems   sentinels.Problems `json:"problems,omitempty"`
}

// createCommand takes what the specification has: a file, or a name with steps and
// a loop as JSON on the command line.
func (a verbs) createCommand() *cobra.Command {
	var file, name, description, steps, loop, safety string
	revision, replace := -1, false
	c := &cobra.Command{
		Use: "create (FILE | - | --name NAME --steps JSON [--loop JSON])", Short: "Store a sentinel, from a file or from its parts",
		Example: "  sentinel create --file build-fix.json\n  jq '.name = \"mine\"' build-fix.json | sentinel create -\n" +
			`  sentinel create --name quick-test --steps '[{"command":"code/verify"}]' --loop '{"type":"count","max":3}'`,
		Args: app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{}
			if len(args) > 0 {
				if file != "" {
					return app.NewUsageError(fmt.Sprintf("create: two files are given, %q and %q", args[0], file), "usage: "+cmd.UseLine())
				}
				file = args[0]
			}
			switch {
			case replace && revision >= 0:
				return app.NewUsageError("create: --revision and --replace exclude each other", "")
			case file != "" && (name != "" || steps != "" || loop != "" || safety != "" || description != ""):
				return app.NewUsageError("create: a file and the parts exclude each other", "")
			case file != "":
				src, err := a.definitionFile(file)
				if err != nil {
					return err
				}
				return a.create(cmd.Context(), src, revision, replace)
			case name == "" || steps == "":
				return app.NewUsageError("create: give FILE, or --name and --steps", "usage: "+cmd.UseLine())
			}
			params["name"] = name
			if description != "" {
				params["description"] = description
			}
			for flag, text := range map[string]string{"steps": steps, "loop": loop, "safety": safety} {
				raw, err := a.JSONFlag("--"+flag, text)
				if err != nil {
					return err
				}
				if raw != nil {
					params[flag] = raw
				}
			}
			place(params, revision, replace)
			return a.store(cmd.Context(), params)
		},
	}
	f := c.Flags()
	f.StringVar(&file, "file", "", "file that holds the definition")
	f.StringVar(&name, "name", "", "its name")
	f.StringVar(&description, "description", "", "what it is for")
	f.StringVar(&steps, "steps", "", "its steps, JSON or @FILE")
	f.StringVar(&loop, "loop", "", "its loop, JSON or @FILE; once if not given")
	f.StringVar(&safety, "safety", "", "its limits, JSON or @FILE")
	f.IntVar(&revision, "revision", -1, "revision the edit was made on, 0 for a new one; another one is refused")
	f.BoolVar(&replace, "replace", false, "replace another definition with this id by a new revision")
	return c
}

// place says what the definition may take the place of.
func place(params map[string]any, revision int, replace bool) {
	if revision >= 0 {
		params["revision"] = revision
	}
	if replace {
		params["replace"] = true
	}
}

// create stores the definition of src.
func (a verbs) create(ctx context.Context, src *app.Source, revision int, replace bool) (err error) {
	s, err := a.Connect(ctx, false)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	if err := a.ValidateEdit(ctx, s, src); err != nil {
		return err
	}
	params := map[string]any{"definition": string(src.Text)}
	src.PlaceBeside(params)
	place(params, revision, replace)
	return app.NameFile(a.keep(ctx, s, params, src), src)
}

// definitionFile reads a definition that must be a file: FILE, a name in the
// project's folders, or standard input.
func (a verbs) definitionFile(target string) (*app.Source, error) {
	src, err := a.ReadTrusted(target)
	if err == nil && src == nil {
		err = app.NotFound(a.FileHint(target), "no definition %q", target)
	}
	return src, err
}

// store stores a sentinel that was given in parts. Its problems have places in the
// parts, not in a file, so nothing is checked before.
func (a verbs) store(ctx context.Context, params map[string]any) (err error) {
	s, err := a.Connect(ctx, false)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	return a.keep(ctx, s, params, nil)
}

// keep stores a sentinel and prints its revision; the same text again is
// the same revision. src is the file it was read from, whose problems have been shown; nil
// if there is none.
func (a verbs) keep(ctx context.Context, s *app.Session, params map[string]any, src *app.Source) error {
	var out saved
	if err := s.Call(ctx, "sentinel/create", params, &out); err != nil {
		return app.Invalid(err)
	}
	if src == nil {
		a.ShowProblems(out.Problems)
	}
	if src != nil {
		out.Warning = src.NameBeside(out.Warning)
	}
	if out.Warning != "" {
		a.Warn(out.Warning)
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(out)
	}
	for _, s := range append(out.Beside, out) {
		if err := a.Out.Printf("%s  revision %d\n", s.SentinelID, s.Revision); err != nil {
			return err
		}
	}
	return nil
}
