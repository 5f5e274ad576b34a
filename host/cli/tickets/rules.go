package tickets

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
)

func (a verbs) context() *cobra.Command {
	var token uint64
	var bytes int
	c := &cobra.Command{
		Use: "context ID", Short: "Print what the next attempt at a ticket needs, as a prompt",
		Long: "It has the ticket, the feedback and errors of earlier attempts, the results of its dependencies, and rules.\n" +
			"-o json has the same as fields.",
		Example: "  sentinel ticket context T-1", Args: app.ExactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{"id": args[0]}
			if token != 0 {
				params["token"] = token
			}
			if bytes != 0 {
				params["max_bytes"] = bytes
			}
			var out struct {
				Prompt string `json:"prompt"`
			}
			raw, err := a.call(cmd.Context(), "ticket/context", params, &out)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(raw)
			}
			_, err = io.WriteString(a.Out.Stream(), out.Prompt)
			return err
		},
	}
	f := c.Flags()
	f.Uint64Var(&token, "token", 0, "of the claim that asks: what it is offered is then recorded")
	f.IntVar(&bytes, "max-bytes", 0, "of the prompt (default 65536)")
	return c
}

// A rule is what the verbs show of one.
type rule struct {
	ID            string   `json:"id"`
	Kind          string   `json:"kind"`
	State         string   `json:"state"`
	Text          string   `json:"text"`
	Priority      int      `json:"priority"`
	Evidence      []string `json:"evidence"`
	Offered       int      `json:"offered"`
	Effectiveness *float64 `json:"effectiveness"`
	Reason        string   `json:"reason"`
	Trial         struct {
		With, Without struct{ Attempts, Succeeded int }
	} `json:"trial"`
	Source struct {
		Kind   string `json:"kind"`
		By     string `json:"by"`
		Ticket string `json:"ticket"`
	} `json:"source"`
}

func (a verbs) rules() *cobra.Command {
	var states []string
	c := &cobra.Command{
		Use: "rules", Short: "List the rules that were learned from tickets, with their effect",
		Long: "Active rules are in the prompts of `sentinel ticket context`. What was learned from tickets, steps and models\n" +
			"is proposed, and in no prompt before a person accepts it.",
		Example: "  sentinel ticket rules --state proposed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := map[string]any{}
			if len(states) > 0 {
				params["state"] = states
			}
			var out struct {
				Rules []rule `json:"rules"`
				Total int    `json:"total"`
			}
			raw, err := a.call(cmd.Context(), "ticket/rules", params, &out)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(raw)
			}
			if len(out.Rules) == 0 {
				if len(params) > 0 {
					a.Info("no rule matches")
				} else {
					a.Info("there are no rules yet; `sentinel ticket rules add TEXT` writes one")
				}
				return nil
			}
			rows := []output.Row{output.Head(a.PaintOut, "RULE", "KIND", "STATE", "PRIORITY", "SOURCE", "OFFERED", "SUCCESS", "TEXT", "")}
			for _, r := range out.Rules {
				rows = append(rows, output.Row{
					output.Escape(r.ID), output.Escape(r.Kind), output.Escape(r.State), output.Number(r.Priority), output.Clip(r.from(), 30),
					output.Number(r.Offered), output.Escape(r.success()), output.Escape(r.Text), // a decision needs all of it
					a.PaintOut.Dim(output.Escape(r.effect())),
				})
			}
			if err := a.Table(rows); err != nil {
				return err
			}
			if more := out.Total - len(out.Rules); more > 0 {
				a.Info("there are %d more: --state selects", more)
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&states, "state", nil, "only rules in this state: seen, proposed, active or retired; repeatable")
	c.AddCommand(a.addRule())
	for action, short := range map[string]string{
		"accept": "Offer a rule to later attempts", "retire": "Stop offering a rule; it is not proposed again", "remove": "Forget a rule",
	} {
		c.AddCommand(a.decideRule(action, short))
	}
	return c
}

// from returns where a rule comes from in a few words.
func (r rule) from() string {
	switch n := len(r.Evidence); {
	case n > 1:
		return fmt.Sprintf("%s %s and %d more", r.Source.Kind, r.Source.Ticket, n-1)
	case r.Source.Ticket != "":
		return r.Source.Kind + " " + r.Source.Ticket
	}
	return strings.TrimSpace(r.Source.Kind + " " + r.Source.By)
}

func (r rule) success() string {
	if r.Effectiveness == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100**r.Effectiveness)
}

// effect returns what a trial has shown, or shows so far.
func (r rule) effect() string {
	with, without := r.Trial.With, r.Trial.Without
	if with.Attempts+without.Attempts == 0 {
		return r.Reason
	}
	return fmt.Sprintf("trial: %d of %d with it succeeded, %d of %d without it", with.Succeeded, with.Attempts, without.Succeeded, without.Attempts)
}

func (a verbs) addRule() *cobra.Command {
	var project, category string
	var labels, files []string
	var priority int
	var pattern bool
	c := &cobra.Command{
		Use: "add TEXT", Short: "Write a rule for the prompts of later attempts",
		Example: "  sentinel ticket rules add 'Generated files are not edited: run make generate' --file 'gen/**' --priority 80", Args: app.ExactArgs("TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{"text": args[0], "priority": priority}
			if pattern {
				params["kind"] = "pattern"
			}
			for name, value := range map[string]string{"project": project, "category": category} {
				if value != "" {
					params[name] = value
				}
			}
			for name, list := range map[string][]string{"labels": labels, "files": files} {
				if len(list) > 0 {
					params[name] = list
				}
			}
			return a.showRule(cmd, "ticket/add-rule", params)
		},
	}
	f := c.Flags()
	f.StringVar(&project, "project", "", "only for tickets of this project")
	f.StringVar(&category, "category", "", "only after a failure of this category, such as logic, review or verification")
	f.StringArrayVar(&labels, "label", nil, "only for tickets with this label; repeatable")
	f.StringArrayVar(&files, "file", nil, "only for tickets about files that match this pattern; repeatable")
	f.IntVar(&priority, "priority", 50, "1 to 100; higher is offered first")
	f.BoolVar(&pattern, "pattern", false, "it says what succeeded before")
	return c
}

func (a verbs) decideRule(action, short string) *cobra.Command {
	return &cobra.Command{
		Use: action + " RULE", Short: short, Example: "  sentinel ticket rules " + action + " R-3f9a1c20b4", Args: app.ExactArgs("RULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showRule(cmd, "ticket/decide-rule", map[string]any{"rule": args[0], "action": action})
		},
	}
}

// showRule shows the rule that a command answers with, in one line.
func (a verbs) showRule(cmd *cobra.Command, command string, params map[string]any) error {
	var out struct {
		Rule rule `json:"rule"`
	}
	raw, err := a.call(cmd.Context(), command, params, &out)
	if err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(raw)
	}
	return a.Out.Printf("%s  %s  %s\n", out.Rule.ID, out.Rule.State, output.Clip(out.Rule.Text, 100))
}
