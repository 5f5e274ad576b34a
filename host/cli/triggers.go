package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// triggersCommand shows what would start sentinels. What they count is kept in the
// store, so it can be seen without a server, but nothing fires then.
func (a *app) triggersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "triggers [NAME]", Short: "Show what triggers wait for, and what became of what they fired",
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
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
func (a *app) triggersOf(ctx context.Context, s *session, id sentinels.ID) ([]runtime.TriggerInfo, error) {
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
func (a *app) showTriggers(s *session, list []runtime.TriggerInfo) error {
	if done, err := writeItems(a, list, list); done {
		return err
	}
	if len(list) == 0 {
		a.say("there are no triggers")
		return nil
	}
	p := a.paintOut
	rows := []row{head(p, "SENTINEL", "TRIGGER", "WAITS FOR", "STATE", "NEXT", "LAST", "FIRES", "")}
	for _, t := range list {
		last := termtext.Text("")
		if !t.LastFire.IsZero() {
			last = ago(a.env.Now(), t.LastFire)
		}
		rows = append(rows, row{
			escaped(t.Sentinel), escaped(t.Type), clip(t.Detail, 40), a.armed(t), a.when(t.Next), last, escaped(fires(t)), p.dim(clip(cmp.Or(t.Problem, t.LastReason), 70)),
		})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	if !s.serves() {
		a.say("no server runs here, so nothing fires; `sentinel serve` does that")
	}
	return nil
}

// armed is how a trigger stands, in a word. Paused goes first: it is what somebody
// wanted, also where the trigger could not fire anyway.
func (a *app) armed(t runtime.TriggerInfo) termtext.Text {
	p := a.paintOut
	switch {
	case t.Paused:
		return p.warn("paused")
	case t.Armed:
		return p.good("armed")
	case t.Problem != "":
		return p.bad("broken")
	}
	return p.dim("off")
}

// when is a planned time as a person reads it: the day is left out when it is
// today's.
func (a *app) when(t time.Time) termtext.Text {
	if t.IsZero() {
		return ""
	}
	local, now := t.Local(), a.env.Now().Local()
	if local.YearDay() == now.YearDay() && local.Year() == now.Year() {
		return escaped(local.Format(time.TimeOnly))
	}
	return escaped(local.Format("2006-01-02 15:04"))
}

// fires counts what became of fires; what never happened is left out. The parts
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
