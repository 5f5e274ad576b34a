package tickets

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

func (a verbs) inbox() *cobra.Command {
	var kinds []string
	var after, by string
	var limit int
	c := &cobra.Command{
		Use: "inbox", Short: "List what waits for a person, of agents last, the oldest first",
		Long: "Approvals, calls that a crash left in doubt, steps in quarantine, runs at a limit, tickets that are held,\n" +
			"blocked or to be reviewed, and sentinels of models and agents that name more commands than their authors\n" +
			"may call, with what to type.",
		Example: "  sentinel inbox --kind approval --kind ticket", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := map[string]any{"limit": limit}
			if len(kinds) > 0 {
				params["kind"] = kinds
			}
			if after != "" {
				params["after"] = after
			}
			if by != "" {
				params["by"] = by
			}
			filtered := len(params) > 1
			if a.Env.StdoutTerminal && a.Flags.Output == output.FormatTable && by == "" && after == "" {
				params["each"] = shownOfEach
			}
			var out struct {
				Entries []entry `json:"entries"`
				Next    string  `json:"next"`
				More    []struct {
					By      string `json:"by"`
					Entries int    `json:"entries"`
				} `json:"more"`
			}
			raw, err := a.call(cmd.Context(), "inbox/list", params, &out)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(raw)
			}
			if len(out.Entries) == 0 {
				if filtered {
					a.Info("nothing that matches these flags waits for a person")
				} else {
					a.Info("nothing waits for a person")
				}
				return nil
			}
			rows := []output.Row{output.Head(a.PaintOut, "SINCE", "KIND", "SUBJECT", "WHY", "COMMAND")}
			for _, e := range out.Entries {
				rows = append(rows, output.Row{output.Ago(a.Env.Now(), e.Since), output.Escape(e.Kind), output.Clip(e.Subject, 40), output.Clip(e.why(), 120), output.Clip(a.toType(e), 160)})
			}
			if a.Env.StdoutTerminal { // where a column would cut the line to type
				for i := range rows {
					rows[i] = rows[i][:len(rows[i])-1]
				}
			}
			if err := a.Table(rows); err != nil {
				return err
			}
			for _, e := range out.Entries {
				if a.Env.StdoutTerminal {
					if err := a.Out.Printf("%s %s\n", a.PaintOut.Dim(output.Clip(e.Subject, 40)+":"), a.toType(e)); err != nil {
						return err
					}
				}
				if e.Origin != "" {
					a.Info("%s", a.filled(termtext.Sprintf("%s: %s", e.ID, e.Origin)))
				}
				if err := a.showLines(e); err != nil {
					return err
				}
			}
			for _, m := range out.More {
				a.Info("and %d more of %s: sentinel inbox%s --by %s", m.Entries, m.By, a.SameStore(), output.Quote(m.By))
			}
			if out.Next != "" {
				a.Info("there are more: --cursor %s", out.Next)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringArrayVar(&kinds, "kind", nil, "only this kind: approval, doubt, quarantine, limit, ticket or definition; repeatable")
	f.StringVar(&by, "by", "", "only of this agent, agent:NAME, or of models, model")
	f.StringVar(&after, "cursor", "", "what the page before printed at its end")
	f.IntVar(&limit, "limit", 50, "entries on the page, at most 200")
	return c
}

// shownOfEach is how many entries of each agent, and of models, a terminal shows if none is named.
const shownOfEach = 5

// kindDefinition is the kind of entries about definitions.
const kindDefinition = "definition"

// An entry is what the verb shows of one.
type entry struct {
	ID      string    `json:"id"`
	Call    string    `json:"call"`
	Kind    string    `json:"kind"`
	Since   time.Time `json:"since"`
	Subject string    `json:"subject"`
	Prompt  string    `json:"prompt"`
	Origin  string    `json:"origin"`
	// Deadline is when the question ends without an answer, zero for never.
	Deadline time.Time `json:"deadline"`
	Expired  bool      `json:"expired"`

	Choices []string `json:"choices"`

	Lines []string       `json:"lines"` // that a release approves, or of a difference
	Pin   map[string]any `json:"pin"`
}

// pin returns a parameter that binds the decision to what the entry shows, "" if there is none of that name.
func (e entry) pin(name string) string {
	if v, ok := e.Pin[name]; ok {
		return fmt.Sprint(v)
	}
	return ""
}

// whyBytes is how much of a question the table has.
const whyBytes = 80

// why is what is asked, and until when.
func (e entry) why() string {
	prompt := textcut.Mark(e.Prompt, whyBytes)
	if until := app.Until(e.Deadline, e.Expired); until != "" {
		prompt += " (" + until + ")"
	}
	return prompt
}

// showLines prints what a decision is about: the whole question of a run, the shell lines that a release of a ticket
// approves, each whole, the difference of a definition, or what is not of a person in a run.
func (a verbs) showLines(e entry) error {
	page := new(output.Page)
	if why := strings.TrimSpace(e.Prompt); e.Call != "" && (len(why) > whyBytes || strings.Contains(why, "\n")) {
		page.Printf("%s\n", a.filled(termtext.Sprintf("\nrun %s asks%s:\n  %s", e.ID, app.TextLength(why), app.Block(why))))
		page.Printf("to answer this question and no other: %s\n", a.toType(e))
	}
	if len(e.Lines) == 0 {
		return a.Out.Write(page.Text())
	}
	if e.Kind == kindDefinition {
		page.Printf("\nwhat was changed in %s:\n", e.ID)
		page.Printf("  %s\n", app.Block(strings.Join(e.Lines, "\n")))
		page.Printf("to accept this revision and no other: %s\n", a.toType(e))
		return a.Out.Write(page.Text())
	}
	if e.Call != "" {
		page.Printf("\n%s\n", a.filled(app.ShowOfOthers(e.ID, e.Lines)))
		return a.Out.Write(page.Text())
	}
	page.Printf("\n%s\n", a.filled(termtext.Sprintf("a release of %s approves these lines, which checks execute or send:", e.ID)))
	for _, line := range e.Lines {
		page.Printf("  %s\n", app.Block(line))
	}
	page.Printf("to approve these and no others: sentinel decide%s %s release --%s %s\n", a.SameStore(), output.Quote(e.ID), app.DigestFlag, e.pin("criteria_digest"))
	return a.Out.Write(page.Text())
}

// filled breaks lines that are too long for the terminal at words, below the first word of each. It is for prose:
// lines that are executed or typed stay whole, so that they are what a person copies.
func (a verbs) filled(text termtext.Text) termtext.Text {
	if !a.Env.StdoutTerminal {
		return text
	}
	width := a.Env.Width()
	var lines []termtext.Text
	for line := range strings.SplitSeq(string(text), "\n") {
		words := strings.TrimLeft(line, " ")
		indent := termtext.Text(line[:len(line)-len(words)])
		if output.Width(termtext.Text(line)) <= width || len(indent) >= width/2 {
			lines = append(lines, termtext.Text(line))
			continue
		}
		for _, part := range output.FillText(termtext.Text(words), width-len(indent)) {
			lines = append(lines, indent+part)
		}
	}
	return termtext.Join(lines, "\n")
}

// toType returns the command line that decides about an entry.
func (a verbs) toType(e entry) string {
	if e.Kind == "limit" {
		return a.ResumeLine(e.ID) + " with a higher limit"
	}
	if e.Expired {
		return a.ResumeLine(e.ID)
	}
	if e.Kind == kindDefinition {
		return "sentinel accept" + a.SameStore() + " " + output.Quote(e.ID) + " " + output.Quote(e.pin("revision"))
	}
	line := "sentinel decide" + a.SameStore() + " " + output.Quote(e.ID)
	if asked := cmp.Or(e.pin("question"), e.Call); asked != "" {
		line += " " + output.Quote(asked)
	}
	line += " " + strings.Join(e.Choices, "|")
	if commit := e.pin("verified_commit"); commit != "" {
		line += " --verified-commit " + commit
	}
	if e.Kind == "quarantine" {
		line += " --comment WHY" // without it a quarantine is not lifted
	}
	return line
}
