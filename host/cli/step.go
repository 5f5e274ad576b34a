package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// stepCommand is the place of the verbs on single steps.
func (a *app) stepCommand() *cobra.Command {
	c := &cobra.Command{Use: "step", Short: "Look at the steps of a stored sentinel",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Sprintf("step: %q is no verb", args[0]), "there is: sentinel step list NAME"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use: "list NAME", Short: "List the steps, with their addresses and how they ended last", Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			return a.stepList(cmd.Context(), s, args[0])
		},
	})
	return c
}

// stepsOut is what sentinel/step/list answers.
type stepsOut struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	Revision   int          `json:"revision"`
	Steps      []struct {
		Address string             `json:"address"`
		Type    sentinels.StepType `json:"type"`
		Name    string             `json:"name,omitempty"`
		Step    json.RawMessage    `json:"step"`
		Last    string             `json:"last,omitempty"`
	} `json:"steps"`
}

// stepList shows a step by its name, else by what it says.
func (a *app) stepList(ctx context.Context, s *session, name string) error {
	var out stepsOut
	if err := s.call(ctx, "sentinel/step/list", map[string]any{"sentinelId": name}, &out); err != nil {
		return err
	}
	if a.flags.output != asTable {
		return a.writeJSON(out)
	}
	rows := [][]string{head(a.paintOut, "ADDRESS", "TYPE", "LAST", "NAME")}
	for _, l := range out.Steps {
		name := l.Name
		if name == "" {
			name = clip(string(l.Step), 70)
		}
		rows = append(rows, []string{l.Address, string(l.Type), l.Last, clip(name, 70)})
	}
	return table(a.env.Stdout, rows)
}
