package definitions

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// diffed is the result of sentinel/diff.
type diffed struct {
	SentinelID sentinels.ID    `json:"sentinelId"`
	Run        sentinels.RunID `json:"run,omitempty"`
	From       int             `json:"from"`
	To         int             `json:"to,omitempty"`
	Edit       int             `json:"edit,omitempty"`
	Changes    json.RawMessage `json:"changes"` // for programs, unchanged
	Text       string          `json:"text"`    // for people, in the unified form
}

// diffCommand compares two revisions. Without numbers it is the newest edit,
// which is what a user who looks for a change wants to see.
func (a verbs) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff NAME|RUN [FROM] [TO]", Short: "Show what two revisions of a sentinel do not have in common",
		Example: "  sentinel diff nightly\n  sentinel diff nightly 2 5",

		Long: "Without numbers: the newest revision and the one before. With one: that one and the newest.\n" +
			"Of a RUN: its own edits and the revision that they were made on.",
		Args: app.RangeArgs(1, 3, "NAME or RUN"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			params := map[string]any{}
			// The numbers are read before a process is looked for: a slip costs nothing.
			for i, key := range []string{"from", "to"} {
				if i+1 < len(args) {
					if params[key], err = revisionNumber(args[i+1]); err != nil {
						return err
					}
				}
			}
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			// A deleted sentinel is in no list, but its revisions can be compared.
			name := args[0]
			if id, none := a.FindTarget(cmd.Context(), s, name); none == nil {
				name = id
			}
			var out diffed
			if err := a.CallStored(cmd.Context(), s, name, "sentinel/diff", params, &out); err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(out)
			}
			if out.Text == "" { // no output, like diff; the message goes to standard error
				a.Info("no difference")
			}
			return a.writeDiff(out.Text)
		},
	}
}

// revisionNumber reads the number of a revision, with or without the @ that
// names it elsewhere.
func revisionNumber(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "@"))
	if err != nil || n < 1 {
		return 0, app.NewUsageError(fmt.Sprintf("invalid revision %q", text), "a revision is a number from 1 on; `sentinel revisions NAME` lists them")
	}
	return n, nil
}

// writeDiff writes a difference in the unified form, coloured as people know it.
func (a verbs) writeDiff(text string) error {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	p := a.PaintOut
	var b output.Page
	for part := range strings.SplitSeq(text, "\n") {
		line := output.Escape(part)
		switch {
		case strings.HasPrefix(part, "---"), strings.HasPrefix(part, "+++"):
			line = p.Strong(line)
		case strings.HasPrefix(part, "@@"), strings.HasPrefix(part, "("):
			line = p.Dim(line)
		case strings.HasPrefix(part, "+"):
			line = p.Good(line)
		case strings.HasPrefix(part, "-"):
			line = p.Bad(line)
		}
		b.Add(line + "\n")
	}
	return a.Out.Write(b.Text())
}
