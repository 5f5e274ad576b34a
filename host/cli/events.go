package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// emitCommand makes a store if there is none: an event is durable, and a run that
// begins later may look back for it.
func (a *app) emitCommand() *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "emit NAME", Short: "Emit an event, for runs that wait for it",
		Example: `  sentinel emit git:push --data '{"branch":"main"}'`,
		Args:    exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			params := map[string]any{"event": args[0]}
			raw, err := a.jsonFlag("--data", data)
			if err != nil {
				return err
			}
			if raw != nil {
				params["data"] = raw
			}
			s, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			var out struct {
				ID    string    `json:"id"`
				Event string    `json:"event"`
				Time  time.Time `json:"time"`
			}
			if err := s.Call(cmd.Context(), "events/emit", params, &out); err != nil {
				return err
			}
			if a.flags.output != asTable {
				return a.writeJSON(out)
			}
			err = a.out.printf("%s  %s\n", out.Event, out.ID)
			return err
		},
	}
	c.Flags().StringVar(&data, "data", "", "what the event carries, JSON or @FILE")
	return c
}

// tailed is what events/tail answers.
type tailed struct {
	Events []json.RawMessage `json:"events"`
}

// eventsCommand looks at the log once; its verb tail can stay.
func (a *app) eventsCommand() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "events [PATTERN]", Short: "Show the newest events, the newest last", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			params := map[string]any{"limit": limit}
			if len(args) > 0 {
				params["pattern"] = args[0]
			}
			var out tailed
			if err := s.Call(cmd.Context(), "events/tail", params, &out); err != nil {
				return err
			}
			return a.showEvents(out.Events)
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "so many")
	c.AddCommand(a.tailCommand())
	return c
}

// showEvents writes the records as they are stored, or a line each for people.
func (a *app) showEvents(events []json.RawMessage) error {
	if events == nil {
		events = []json.RawMessage{}
	}
	if done, err := writeItems(a, events, events); done {
		return err
	}
	rows := []row{head(a.paintOut, "TIME", "EVENT", "SOURCE", "DATA")}
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
		rows = append(rows, row{escaped(e.Time.Local().Format(time.DateTime)), escaped(e.Name + e.Event), clip(e.Source, 40), clipJSON(e.Data, 80)})
	}
	if len(events) == 0 {
		a.say("there is no event")
		return nil
	}
	return a.table(rows)
}
