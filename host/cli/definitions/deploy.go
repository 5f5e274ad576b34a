package definitions

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// deployed is the result of sentinel/deploy. Paths are on the machine of the host.
type deployed struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	To         string       `json:"to"` // absolute
	Files      []struct {
		File       string       `json:"file"`
		Kind       string       `json:"kind"` // definition, recipe, plugin
		SentinelID sentinels.ID `json:"sentinelId,omitempty"`
		Change     string       `json:"change"` // created, replaced, unchanged
	} `json:"files"`
	Missing []sentinels.ID `json:"missing,omitempty"` // it starts them, and they are not stored
	Notes   []string       `json:"notes,omitempty"`   // such as permissions that a plugin needs there
}

// deployCommand writes a sentinel and what it needs into the folder of another project,
// ready to be committed there. A server does so on its own machine.
func (a verbs) deployCommand() *cobra.Command {
	var to string
	var force bool
	c := &cobra.Command{
		Use: "deploy NAME --to DIR", Short: "Write a sentinel into another project, with what it needs",
		Long: "It needs its definition, the sentinels that it starts, recipes and plugins. A file there that\n" +
			"differs is not replaced unless --force is given.",
		Example: "  sentinel deploy build-fix --to ../other-project",
		Args:    app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if to == "" {
				return app.NewUsageError("deploy: --to is missing", "the folder of the other project")
			}
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			// The host may have another current folder.
			params := map[string]any{"sentinelId": args[0], "to": a.Path(to)}
			if s.ByURL {
				if !filepath.IsAbs(to) {
					return app.NewUsageError(fmt.Sprintf("deploy: %q is a folder on the server's machine and must be absolute", to), "")
				}
				params["to"] = to
			}
			if force {
				params["force"] = true
			}
			var out deployed
			if err := s.Call(cmd.Context(), "sentinel/deploy", params, &out); err != nil {
				return err
			}
			return a.showDeployed(out)
		},
	}
	c.Flags().StringVar(&to, "to", "", "folder of the other project")
	c.Flags().BoolVar(&force, "force", false, "replace files there that differ")
	return c
}

// showDeployed prints what was written, and what the other project has to do.
func (a verbs) showDeployed(out deployed) error {
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(out)
	}
	rows := []output.Row{output.Head(a.PaintOut, "FILE", "KIND", "CHANGE")}
	for _, f := range out.Files {
		rows = append(rows, output.Row{output.Escape(a.Relative(filepath.Join(out.To, f.File))), output.Escape(f.Kind), output.Escape(f.Change)})
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	// Not an error: the other project may have them.
	if len(out.Missing) > 0 {
		var names []string
		for _, id := range out.Missing {
			names = append(names, string(id))
		}
		a.Warn("it starts sentinels that are not stored here: " + strings.Join(names, ", "))
	}
	for _, n := range out.Notes {
		a.Info("%s", n)
	}
	return nil
}
