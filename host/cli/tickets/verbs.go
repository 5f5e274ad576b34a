package tickets

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
)

// verbs are the commands of this package in one invocation.
type verbs struct{ *app.App }

// Commands returns the commands of this package.
func Commands(a *app.App) []*cobra.Command {
	v := verbs{a}
	c := &cobra.Command{
		Use: "ticket", Short: "File, list and decide about tickets: work for agents",
		Example: "  sentinel ticket create 'The parser drops empty lines'\n  sentinel ticket list",

		Long: "Agents claim tickets, and work that failed is tried again with the feedback of earlier attempts.\n" +
			"`sentinel exec ticket/claim` and the other commands ticket/* are what agents use.",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(v.create(), v.list(), v.show(), v.decide(), v.comment(), v.activity(), v.attempts(), v.context(), v.rules(), v.stats(), v.importTickets(), v.remove())
	return app.InGroup(app.GroupRun, c, v.verify(), v.inbox())
}

// A ticket is what the verbs show of one.
type ticket struct {
	ID             string    `json:"id"`
	Title          string    `json:"title"`
	State          string    `json:"state"`
	Priority       int       `json:"priority"`
	Assignee       string    `json:"assignee_id"`
	Phase          string    `json:"phase"`
	Project        string    `json:"project"`
	RetryCount     int       `json:"retry_count"`
	RetryInSeconds *int      `json:"retryInSeconds"`
	HoldReason     string    `json:"hold_reason"`
	Error          string    `json:"error"`
	Verification   string    `json:"verification_status"`
	UpdatedAt      time.Time `json:"updated_at"`
	Description    string    `json:"description"`
	RepoURL        string    `json:"repo_url"`
	BranchName     string    `json:"branch_name"`
	DependsOn      []string  `json:"depends_on"`
	ImpactFlags    []struct {
		TicketID string `json:"ticket_id"`
	} `json:"impact_flags"`
	Feedback *struct {
		Items []string `json:"feedback_for_agent"`
	} `json:"sentinel_feedback"`
}

// call calls a command and decodes its answer into out, which is the raw answer too.
func (a verbs) call(ctx context.Context, command string, params map[string]any, out any) (raw json.RawMessage, err error) {
	s, err := a.Connect(ctx, false)
	if err != nil {
		return nil, err
	}
	defer a.CloseSession(s, &err)
	if err := s.Call(ctx, command, params, &raw); err != nil {
		return nil, err
	}
	if out != nil {
		err = json.Unmarshal(raw, out)
	}
	return raw, err
}

// short shows the ticket that a command answers with, in one line.
func (a verbs) short(ctx context.Context, command string, params map[string]any) error {
	raw, err := a.call(ctx, command, params, nil)
	if err != nil {
		return err
	}
	return a.shortOf(raw)
}

// shortOf is short for an answer.
func (a verbs) shortOf(raw json.RawMessage) error {
	var out struct {
		Ticket ticket `json:"ticket"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(raw)
	}
	return a.Out.Printf("%s  %s  %s\n", out.Ticket.ID, output.Escape(out.Ticket.State), output.Clip(out.Ticket.Title, 90))
}

func (a verbs) create() *cobra.Command {
	var description, project, criteria, repository, id, key string
	var priority int
	var labels, depends []string
	c := &cobra.Command{
		Use: "create TITLE", Short: "File a ticket",
		Example: "  sentinel ticket create 'Fix the login' --description @login.md --criteria @criteria.json --priority 5",
		Args:    app.ExactArgs("TITLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{"title": args[0]}
			text, err := a.FileArgument(description)
			if err != nil {
				return err
			}
			for name, value := range map[string]string{"description": text, "project": project, "repo_url": repository, "id": id, "key": key} {
				if value != "" {
					params[name] = value
				}
			}
			raw, err := a.criteria(criteria)
			if err != nil {
				return err
			}
			if raw != nil {
				params["acceptance_criteria"] = raw
			}
			if priority != 0 {
				params["priority"] = priority
			}
			if len(labels) > 0 {
				params["labels"] = labels
			}
			if len(depends) > 0 {
				params["depends_on"] = depends
			}
			return a.short(cmd.Context(), "ticket/create", params)
		},
	}
	f := c.Flags()
	f.StringVar(&description, "description", "", "what to do: text or @FILE")
	f.StringVar(&criteria, "criteria", "", `acceptance criteria, {"checks": [...]}: JSON or @FILE`)
	f.IntVar(&priority, "priority", 0, "higher is claimed first")
	f.StringVar(&project, "project", "", "group of tickets")
	f.StringVar(&repository, "repo", "", "repository as a path or URL (default: the workspace)")
	f.StringArrayVar(&labels, "label", nil, "word to find it by; repeatable")
	f.StringArrayVar(&depends, "after", nil, "id of a ticket that must be done before; repeatable")
	f.StringVar(&id, "id", "", "id of the ticket (default: T-1, T-2 and so on)")
	f.StringVar(&key, "key", "", "idempotency key: a repeated creation finds the ticket")
	return c
}

// criteria reads the flag --criteria: an object with checks, or their list alone.
func (a verbs) criteria(text string) (json.RawMessage, error) {
	raw, err := a.JSONFlag("--criteria", text)
	if err == nil && strings.HasPrefix(strings.TrimSpace(string(raw)), "[") {
		return json.Marshal(map[string]json.RawMessage{"checks": raw})
	}
	return raw, err
}

func (a verbs) list() *cobra.Command {
	var states []string
	var project, query, after string
	var stuck bool
	var limit int
	c := &cobra.Command{
		Use: "list [WORDS]", Short: "List or search tickets, the newest change first",
		Example: "  sentinel ticket list --state on_hold --state blocked\n  sentinel ticket list 'login timeout'",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{"limit": limit}
			if len(args) > 0 {
				query = args[0]
			}
			for name, value := range map[string]string{"project": project, "query": query, "after": after} {
				if value != "" {
					params[name] = value
				}
			}
			if len(states) > 0 {
				params["state"] = states
			}
			if stuck {
				params["stuck"] = true
			}
			var out struct {
				Tickets []ticket `json:"tickets"`
				Next    string   `json:"next"`
			}
			raw, err := a.call(cmd.Context(), "ticket/list", params, &out)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(raw)
			}
			return a.showList(out.Tickets, out.Next, len(params) > 1)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&states, "state", nil, "only tickets in this state; repeatable")
	f.StringVar(&project, "project", "", "only tickets of this project")
	f.BoolVar(&stuck, "stuck", false, "only tickets in progress that did not change for five minutes")
	f.StringVar(&after, "cursor", "", "what the page before printed at its end")
	f.IntVar(&limit, "limit", 50, "tickets on the page, at most 200")
	return c
}

func (a verbs) showList(list []ticket, next string, filtered bool) error {
	switch {
	case len(list) > 0:
	case filtered && next == "":
		a.Info("no ticket matches")
		return nil
	case next == "":
		a.Info("there are no tickets yet; `sentinel ticket create TITLE` files one")
		return nil
	}
	p := a.PaintOut
	rows := []output.Row{output.Head(p, "TICKET", "STATE", "PRIORITY", "HOLDER", "RETRIES", "CHANGED", "TITLE", "")}
	for _, t := range list {
		rows = append(rows, output.Row{
			output.Escape(t.ID), output.Escape(t.State), output.Number(t.Priority), output.Clip(t.Assignee, 20), output.Number(t.RetryCount),
			output.Ago(a.Env.Now(), t.UpdatedAt), output.Clip(t.Title, 60), p.Dim(output.Clip(reason(t), 90)),
		})
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	if next != "" {
		a.Info("there are more: --cursor %s", next)
	}
	return nil
}

// reason returns in a few words why a ticket is where it is.
func reason(t ticket) string {
	switch {
	case t.HoldReason != "":
		return t.HoldReason
	case t.RetryInSeconds != nil && *t.RetryInSeconds > 0:
		return fmt.Sprintf("retrying in %ds: %s", *t.RetryInSeconds, t.Error)
	case t.Phase != "":
		return t.Phase
	case t.State == "needs_review" && len(t.ImpactFlags) > 0:
		return "a later change affects it: ticket " + t.ImpactFlags[len(t.ImpactFlags)-1].TicketID
	}
	return ""
}

func (a verbs) show() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show a ticket", Example: "  sentinel ticket show T-1", Args: app.ExactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var out struct {
				Ticket ticket `json:"ticket"`
			}
			raw, err := a.call(cmd.Context(), "ticket/get", map[string]any{"id": args[0]}, &out)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(raw)
			}
			t := out.Ticket
			rows := []output.Row{}
			add := func(name, value string) {
				if value != "" {
					rows = append(rows, output.Row{a.PaintOut.Dim(output.Escape(name)), output.Clip(value, 2000)})
				}
			}
			add("ticket", t.ID)
			add("title", t.Title)
			add("state", t.State)
			add("reason", reason(t))
			add("holder", t.Assignee)
			add("verification", t.Verification)
			add("retries", fmt.Sprint(t.RetryCount))
			add("error", t.Error)
			add("repository", t.RepoURL)
			add("branch", t.BranchName)
			for _, id := range t.DependsOn {
				add("after", id)
			}
			if t.Feedback != nil {
				for _, item := range t.Feedback.Items {
					add("feedback", item)
				}
			}
			add("description", t.Description)
			return a.Pairs(rows)
		},
	}
}

func (a verbs) decide() *cobra.Command {
	var comment, digest, commit string
	c := &cobra.Command{
		Use: "decide ID release|reject|accept|hold", Short: "Decide about a ticket that is held, blocked or to be reviewed",
		Long:    "release puts it back into the queue with new retries, reject cancels it, accept makes it done, and hold\ntakes it out of its queue. The comment of a release is feedback for the next attempt.",
		Example: "  sentinel ticket decide T-1 release --comment 'use the new API'", Args: app.ExactArgs("ID", "ACTION"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			params := map[string]any{"id": args[0], "action": args[1]}
			if comment != "" {
				params["comment"] = comment
			}
			if digest != "" {
				params["criteria_digest"] = digest
			}
			if commit != "" {
				params["verified_commit"] = commit
			}
			s, err := a.Connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			raw, err := a.DecideTicket(cmd.Context(), s, params)
			if err != nil {
				return err
			}
			return a.shortOf(raw)
		},
	}
	c.Flags().StringVar(&comment, "comment", "", "why")
	c.Flags().StringVar(&digest, app.DigestFlag, "", "of the criteria that you looked at, as the inbox prints it (default: those that are printed now)")
	c.Flags().StringVar(&commit, "verified-commit", "", "of a ticket's work that you looked at, as the inbox prints it (default: the one that is verified now)")
	return c
}

func (a verbs) comment() *cobra.Command {
	return &cobra.Command{
		Use: "comment ID TEXT", Short: "Append a comment to the log of a ticket", Example: "  sentinel ticket comment T-1 'see the log of the build'", Args: app.ExactArgs("ID", "TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := a.call(cmd.Context(), "ticket/comment", map[string]any{"id": args[0], "text": args[1]}, nil)
			if err != nil || a.Flags.Output == output.FormatTable {
				return err
			}
			return a.WriteJSON(raw)
		},
	}
}

func (a verbs) activity() *cobra.Command {
	var categories []string
	var limit, offset int
	c := &cobra.Command{
		Use: "activity ID", Short: "Show the log of a ticket, newest entry first", Example: "  sentinel ticket activity T-1 --category ticket_retry_scheduled", Args: app.ExactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{"id": args[0], "limit": limit, "offset": offset}
			if len(categories) > 0 {
				params["category"] = categories
			}
			var out struct {
				Activities []struct {
					AgentID  string          `json:"agent_id"`
					Category string          `json:"category"`
					Message  string          `json:"message"`
					Metadata json.RawMessage `json:"metadata"`
					At       time.Time       `json:"created_at"`
				} `json:"activities"`
			}
			raw, err := a.call(cmd.Context(), "ticket/activity", params, &out)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(raw)
			}
			rows := []output.Row{output.Head(a.PaintOut, "TIME", "WHO", "WHAT", "", "REASON")}
			for _, e := range out.Activities {
				rows = append(rows, output.Row{output.LocalTime(e.At), output.Clip(e.AgentID, 20), output.Escape(e.Category), output.Clip(e.Message, 80), output.Clip(reasonOf(e.Metadata), 40)})
			}
			return a.Table(rows)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&categories, "category", nil, "only entries of this kind; repeatable")
	f.IntVar(&limit, "limit", 50, "entries, at most 200")
	f.IntVar(&offset, "offset", 0, "newest entries to leave out")
	return c
}

// reasonOf returns the reason in the metadata of an activity, "" when it has none: agents
// and imports write any JSON there.
func reasonOf(metadata json.RawMessage) string {
	var m struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(metadata, &m)
	return m.Reason
}

func (a verbs) attempts() *cobra.Command {
	return &cobra.Command{
		Use: "attempts ID", Short: "Show the attempts to finish a ticket, oldest first", Example: "  sentinel ticket attempts T-1", Args: app.ExactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			all := []json.RawMessage{}
			for total := 1; len(all) < total; {
				var page struct {
					Attempts []json.RawMessage `json:"attempts"`
					Total    int               `json:"total"`
				}
				if _, err := a.call(cmd.Context(), "ticket/attempts", map[string]any{"id": args[0], "limit": 200, "offset": len(all)}, &page); err != nil {
					return err
				}
				if all, total = append(all, page.Attempts...), page.Total; len(page.Attempts) == 0 {
					break
				}
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(map[string]any{"attempts": all})
			}
			rows := []output.Row{output.Head(a.PaintOut, "ATTEMPT", "ROLE", "OUTCOME", "HOLDER", "ENDED", "ERROR OR FEEDBACK")}
			for _, raw := range all {
				var t struct {
					Number   int       `json:"attempt"`
					Role     string    `json:"role"`
					Holder   string    `json:"agent_id"`
					Outcome  string    `json:"outcome"`
					Error    string    `json:"error"`
					EndedAt  time.Time `json:"ended_at"`
					Feedback struct {
						Items []string `json:"feedback_for_agent"`
					} `json:"sentinel_feedback"`
				}
				if err := json.Unmarshal(raw, &t); err != nil {
					return err
				}
				why := cmp.Or(t.Error, strings.Join(t.Feedback.Items, " "))
				rows = append(rows, output.Row{output.Number(t.Number), output.Escape(t.Role), output.Escape(t.Outcome), output.Clip(t.Holder, 20), output.LocalTime(t.EndedAt), output.Clip(why, 120)})
			}
			return a.Table(rows)
		},
	}
}

func (a verbs) stats() *cobra.Command {
	return &cobra.Command{
		Use: "stats", Short: "Count the tickets in each state", Example: "  sentinel ticket stats -o json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var out struct {
				Total  int            `json:"total"`
				States map[string]int `json:"states"`
			}
			raw, err := a.call(cmd.Context(), "ticket/stats", nil, &out)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(raw)
			}
			rows := []output.Row{}
			for _, state := range sortedKeys(out.States) {
				rows = append(rows, output.Row{output.Escape(state), output.Number(out.States[state])})
			}
			return a.Pairs(append(rows, output.Row{"all", output.Number(out.Total)}))
		},
	}
}

func (a verbs) remove() *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Remove a ticket with its history", Example: "  sentinel ticket delete T-1", Args: app.ExactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := a.call(cmd.Context(), "ticket/delete", map[string]any{"id": args[0]}, nil)
			if err != nil || a.Flags.Output == output.FormatTable {
				return err
			}
			return a.WriteJSON(raw)
		},
	}
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
