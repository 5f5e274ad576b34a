package inspect

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// triggersCommand shows what would start sentinels. What they count is kept in the
// store, so it can be seen without a server, but nothing fires then.
func (a verbs) triggersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "triggers [NAME]", Short: "Show what triggers wait for, and the outcomes of their firings",
		Args: app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			id := sentinels.ID("")
			if len(args) > 0 {
				id = sentinels.ID(args[0])
			}
			list, err := a.triggersOf(cmd.Context(), s, id)
			if err != nil {
				return err
			}
			return a.showTriggers(s, list)
		},
	}
}

// triggersOf asks for the triggers of a sentinel, or of all with "". They come in
// the order of the definitions.
func (a verbs) triggersOf(ctx context.Context, s *app.Session, id sentinels.ID) ([]runtime.TriggerInfo, error) {
	var out struct {
		Triggers []runtime.TriggerInfo `json:"triggers"`
	}
	params := map[string]any{}
	if id != "" {
		params["sentinelId"] = id
	}
	err := s.Call(ctx, "sentinel/triggers", params, &out)
	return out.Triggers, err
}

// showTriggers writes a trigger a line. Counts are exact and survive restarts, so
// they are shown whether or not anything fires now.
func (a verbs) showTriggers(s *app.Session, list []runtime.TriggerInfo) error {
	if done, err := app.WriteItems(a.App, list, list); done {
		return err
	}
	if len(list) == 0 {
		a.Info("no triggers")
		return nil
	}
	p := a.PaintOut
	rows := []output.Row{output.Head(p, "SENTINEL", "TRIGGER", "WAITS FOR", "STATE", "NEXT", "LAST", "FIRES", "")}
	for _, t := range list {
		last := termtext.Text("")
		if !t.LastFire.IsZero() {
			last = output.Ago(a.Env.Now(), t.LastFire)
		}
		rows = append(rows, output.Row{
			output.Escape(t.Sentinel), output.Escape(t.Type), output.Clip(t.Detail, 40), a.armed(t), a.when(t.Next), last, output.Escape(fires(t)), p.Dim(output.Clip(cmp.Or(t.Problem, t.LastReason), 70)),
		})
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	if !s.Serves() {
		a.Info("no server runs here, so nothing fires; `sentinel serve` does that")
	}
	return nil
}

// armed is the state of a trigger in a word. Paused has priority: it is what a user
// wanted, also where the trigger could not fire anyway.
func (a verbs) armed(t runtime.TriggerInfo) termtext.Text {
	p := a.PaintOut
	switch {
	case t.Paused:
		return p.Warn("paused")
	case t.Armed:
		return p.Good("armed")
	case t.Problem != "":
		return p.Bad("broken")
	}
	return p.Dim("off")
}

// when is a planned time as a person reads it: the day is left out when it is
// today's.
func (a verbs) when(t time.Time) termtext.Text {
	if t.IsZero() {
		return ""
	}
	local, now := t.Local(), a.Env.Now().Local()
	if local.YearDay() == now.YearDay() && local.Year() == now.Year() {
		return output.Escape(local.Format(time.TimeOnly))
	}
	return output.Escape(local.Format("2006-01-02 15:04"))
}

// fires counts the outcomes of firings, without those that are 0. The parts
// come to the first number, but for missed ones, which never fired.
func fires(t runtime.TriggerInfo) string {
	if t.Fired == 0 && t.Missed == 0 {
		return "0"
	}
	parts := []string{strconv.FormatUint(t.Fired, 10)}
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{t.Started, "started"}, {t.Skipped, "skipped"}, {t.Filtered, "filtered"}, {t.Coalesced, "coalesced"},
		{t.Duplicates, "duplicate"}, {t.Refused, "refused"}, {uint64(max(0, t.Waiting)), "waiting"}, {t.Missed, "missed"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}
