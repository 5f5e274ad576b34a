package definitions

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// stepCommand is the place of the verbs on single steps.
func (a verbs) stepCommand() *cobra.Command {
	c := &cobra.Command{Use: "step", Short: "Look at and edit the steps of a stored sentinel or of one run",
		Example: "  sentinel step list nightly\n  sentinel step update nightly 0 --params '{\"command\":\"make test\"}'",

		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return app.NewUsageError(fmt.Sprintf("step: unknown command %q", args[0]), "the commands are sentinel step list, add, update, remove")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var id string
	list := &cobra.Command{
		Use: "list NAME|RUN", Short: "List the steps with their addresses, last results and active executions",
		Example: "  sentinel step list nightly",

		Args: func(cmd *cobra.Command, args []string) error {
			if id != "" {
				return app.ExactArgs()(cmd, args)
			}
			return app.ExactArgs("NAME or RUN")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if id == "" {
				id = args[0]
			}
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			return a.stepList(cmd.Context(), s, id)
		},
	}
	list.Flags().StringVar(&id, "sentinelId", "", "the sentinel or run, in place of the argument")
	c.AddCommand(list, a.stepAddCommand(), a.stepUpdateCommand(), a.stepRemoveCommand())
	return c
}

// stepsOut is the result of sentinel/step/list.
type stepsOut struct {
	SentinelID sentinels.ID    `json:"sentinelId"`
	Run        sentinels.RunID `json:"run,omitempty"` // the steps are those of this run alone
	Revision   int             `json:"revision"`
	Edit       int             `json:"edit,omitempty"`
	Hash       string          `json:"hash"`
	Steps      []stepLine      `json:"steps"`
	Runs       int             `json:"runs"`
}

// A stepLine is one step and its state.
type stepLine struct {
	Address  string             `json:"address"`
	Type     sentinels.StepType `json:"type"`
	ID       string             `json:"id,omitempty"`
	Name     string             `json:"name,omitempty"`
	Step     json.RawMessage    `json:"step"`
	Last     string             `json:"last,omitempty"` // ok, failed, skipped, running
	Error    *abi.Error         `json:"error,omitempty"`
	LastAt   *time.Time         `json:"lastAt,omitempty"`
	Millis   float64            `json:"durationMs,omitempty"`
	InFlight []inFlight         `json:"inFlight,omitempty"`
}

// An inFlight is a run that is at the step now.
type inFlight struct {
	Run       sentinels.RunID `json:"run"`
	Iteration int             `json:"iteration"`
	Attempt   int             `json:"attempt,omitempty"`
	Since     time.Time       `json:"since"`
	WaitsFor  string          `json:"waitsFor,omitempty"`
}

// stepList shows the steps of what word means: a stored sentinel, or a run.
func (a verbs) stepList(ctx context.Context, s *app.Session, word string) error {
	id, err := a.FindTarget(ctx, s, word)
	if err != nil {
		return err
	}
	var out stepsOut
	if err := s.Call(ctx, "sentinel/step/list", map[string]any{"sentinelId": id}, &out); err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(out)
	}
	rows := []output.Row{output.Head(a.PaintOut, "ADDRESS", "TYPE", "STATE", "NAME")}
	for _, l := range out.Steps {
		rows = append(rows, output.Row{output.Escape(l.Address), output.Escape(l.Type), a.stepState(l), output.Clip(l.called(), 70)})
	}
	return a.Table(rows)
}

// called is the step's name, else its id, else its fields: the type has a
// column of its own.
func (l stepLine) called() string {
	// Both are the author's, and the id is what --address takes.
	if name := cmp.Or(l.Name, l.ID); name != "" {
		return name
	}
	var does struct {
		Command string          `json:"command"`
		Params  json.RawMessage `json:"params"`
	}
	if json.Unmarshal(l.Step, &does) == nil && l.Type == "command" {
		return does.Command + " " + string(termtext.JSON(does.Params))
	}
	return strings.Replace(string(termtext.JSON(l.Step)), fmt.Sprintf("%q:%q,", "type", l.Type), "", 1)
}

// stepState is the state of a step in a few words. An active execution has priority over
// the last result, and the reason of a failure over its time. A step that no run of this
// revision has executed has no state.
func (a verbs) stepState(l stepLine) termtext.Text {
	p, now := a.PaintOut, a.Env.Now()
	switch n := len(l.InFlight); {
	case n == 1: // the usual case: more than one run at once needs the field concurrency
		at := l.InFlight[0]
		text := termtext.Sprintf("running %s, iteration %d", output.Clock(now.Sub(at.Since)), at.Iteration)
		if at.Attempt > 1 {
			text += termtext.Sprintf(", attempt %d", at.Attempt)
		}
		if at.WaitsFor != "" {
			text += ", " + output.Clip(at.WaitsFor, 40)
		}
		return p.Strong(text)
	case n > 1:
		return p.Strong(termtext.Sprintf("running in %d runs", n))
	case l.Error != nil:
		return p.Bad("failed") + " " + p.Dim(output.Clip(l.Error.Message, 50))
	case l.Last == "failed":
		return p.Bad(output.Escape(l.Last))
	case l.Last == "ok" && l.LastAt != nil:
		return p.Good("ok") + " " + p.Dim(output.Duration(output.Millis(l.Millis))+", "+output.Ago(now, *l.LastAt))
	}
	return output.Escape(l.Last)
}
