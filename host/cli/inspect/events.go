package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// emitCommand makes a store if there is none: an event is durable, and a run that
// begins later may look back for it.
func (a verbs) emitCommand() *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "emit NAME", Short: "Emit an event, for runs that wait for it",
		Example: `  sentinel emit git:push --data '{"branch":"main"}'`,
		Args:    app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			params := map[string]any{"event": args[0]}
			raw, err := a.JSONFlag("--data", data)
			if err != nil {
				return err
			}
			if raw != nil {
				params["data"] = raw
			}
			s, err := a.Connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			var out struct {
				ID    string    `json:"id"`
				Event string    `json:"event"`
				Time  time.Time `json:"time"`
			}
			if err := s.Call(cmd.Context(), "events/emit", params, &out); err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(out)
			}
			if err := a.Out.Printf("%s  %s\n", out.Event, out.ID); err != nil || !a.Env.StdoutTerminal {
				return err
			}
			a.showFiredBy(cmd.Context(), s, out.Event)
			return nil
		},
	}
	c.Flags().StringVar(&data, "data", "", "what the event carries, JSON or @FILE")
	return c
}

// showFiredBy says which sentinels have triggers for an event: one that starts nothing looks like one that
// starts runs. It says nothing to a caller who may not list triggers.
func (a verbs) showFiredBy(ctx context.Context, s *app.Session, event string) {
	list, err := a.triggersOf(ctx, s, "", 0)
	if err != nil {
		return
	}
	var ids []string
	for _, t := range list {
		matches := func(pattern string) bool { return sentinels.MatchEvent(pattern, event) }
		patterns, _, _ := strings.Cut(t.Detail, " of ") // behind them is whose events they take
		if t.Type == "event" && slices.ContainsFunc(strings.Split(patterns, ", "), matches) && !slices.Contains(ids, string(t.Sentinel)) {
			ids = append(ids, string(t.Sentinel))
		}
	}
	if len(ids) == 0 {
		a.Info("no sentinel has a trigger for it; runs that wait for it continue")
		return
	}
	a.Info("with a trigger for it: %s", textcut.Mark(strings.Join(ids, ", "), 300))
	if !s.Serves() {
		a.Info(nothingFires)
	}
}

// tailed is the result of events/tail.
type tailed struct {
	Events []json.RawMessage `json:"events"`
}

// eventsCommand looks at the log once; its verb tail can stay.
func (a verbs) eventsCommand() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "events [PATTERN]", Short: "Show the newest events, the newest last",
		Example: "  sentinel events 'sentinel:*:failed'\n  sentinel events tail -f",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			params := map[string]any{"limit": limit}
			if len(args) > 0 {
				params["pattern"] = args[0]
			}
			var out tailed
			if err := s.Call(cmd.Context(), "events/tail", params, &out); err != nil {
				return err
			}
			return a.showEvents(out.Events, strings.Join(args, ""))
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "so many")
	c.AddCommand(a.tailCommand())
	return c
}

// showEvents writes the records as they are stored, or a line each for people.
func (a verbs) showEvents(events []json.RawMessage, pattern string) error {
	if events == nil {
		events = []json.RawMessage{}
	}
	if done, err := app.WriteItems(a.App, events, events); done {
		return err
	}
	rows := []output.Row{output.Head(a.PaintOut, "TIME", "EVENT", "SOURCE", "DATA")}
	for _, raw := range events {
		var e struct {
			Name   string          `json:"type"`
			Event  string          `json:"event"`
			Source string          `json:"source"`
			Time   time.Time       `json:"time"`
			Data   json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		rows = append(rows, output.Row{output.LocalTime(e.Time), output.Escape(e.Name + e.Event), output.Clip(e.Source, 40), output.ClipJSON(e.Data, 80)})
	}
	if len(events) == 0 {
		if pattern == "" || pattern == "**" {
			a.Info("there are no events yet")
		} else {
			a.Info("no event matches %s", output.Escape(pattern))
		}
		return nil
	}
	return a.Table(rows)
}
