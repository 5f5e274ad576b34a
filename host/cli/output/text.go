package output

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// ShortID is the end of a run's id: ids begin with the time, and runs of one moment
// differ in their ends.
func ShortID(id sentinels.RunID) termtext.Text {
	s := string(id)
	return Escape(s[max(0, len(s)-8):])
}

// Clip escapes text and shortens it to one line of at most n characters. White space
// of any length becomes one blank.
func Clip[S ~string](s S, n int) termtext.Text {
	return Cut(Escape(strings.Join(strings.Fields(string(s)), " ")), n)
}

// Cut shortens text without colours to n characters.
func Cut(text termtext.Text, n int) termtext.Text {
	if utf8.RuneCountInString(string(text)) <= n {
		return text
	}
	r := []rune(text)
	return termtext.Text(r[:max(0, n-1)]) + "…"
}

// ClipJSON is clip for a JSON value.
func ClipJSON(value json.RawMessage, n int) termtext.Text {
	return Clip(string(termtext.JSON(value)), n)
}

// JSONText escapes a JSON value on one line.
func JSONText(value json.RawMessage) termtext.Text { return Escape(string(termtext.JSON(value))) }

// Duration formats d for people: 0.4ms, 12ms, 1.2s, 3m05s, 2h07m.
func Duration(d time.Duration) termtext.Text {
	return termtext.Text(durationText(d))
}

// Delay formats a duration of a definition as it is written there: 1s, 1.5s, 2m.
func Delay(d time.Duration) termtext.Text {
	text := d.Round(time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return termtext.Text(text)
}

func durationText(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + "ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Clock formats d in whole seconds, for a line that is redrawn every second.
func Clock(d time.Duration) termtext.Text {
	if d < time.Minute {
		return termtext.Sprintf("%ds", max(0, int(d.Seconds())))
	}
	return Duration(d)
}

// Millis converts a duration from its JSON form, milliseconds.
func Millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Ago formats the time since t in one unit.
func Ago(now, t time.Time) termtext.Text {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < time.Minute:
		return termtext.Sprintf("%ds ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return termtext.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return termtext.Sprintf("%dh ago", int(d.Hours()))
	default:
		return termtext.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

// Time formats a time with its day and zone, in the zone of t.
func Time(t time.Time) termtext.Text { return WithZone(t, time.DateTime) }

// LocalTime is Time in the zone of this host.
func LocalTime(t time.Time) termtext.Text { return Time(t.Local()) }

// LocalClock formats the time of day and the zone of this host.
func LocalClock(t time.Time) termtext.Text { return WithZone(t.Local(), time.TimeOnly) }

// WithZone formats a time and adds the name of the zone, or its offset where a time that was read from JSON
// has no more than that.
func WithZone(t time.Time, layout string) termtext.Text {
	zone := "MST"
	if name, _ := t.Zone(); name == "" || name[0] == '+' || name[0] == '-' {
		zone = "-07:00"
	}
	return Escape(t.Format(layout + " " + zone))
}

// Soon formats a planned time: the day is left out if it is that of now, in the zone of t.
func Soon(now, t time.Time) termtext.Text {
	if now = now.In(t.Location()); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return WithZone(t, time.TimeOnly)
	}
	return WithZone(t, "2006-01-02 15:04")
}

// Number formats n for a cell of a table.
func Number(n int) termtext.Text { return termtext.Text(strconv.Itoa(n)) }

// Spent formats the usage of models; it is empty if there was no call.
func Spent(u sentinels.Usage) termtext.Text {
	if u.Calls == 0 && u.Tokens() == 0 {
		return ""
	}
	s := Grouped(u.Tokens()) + " tokens"
	if u.CostUSD > 0 {
		s += termtext.Sprintf(" $%.4f", u.CostUSD)
	}
	return s
}

// Grouped writes a number with a comma every three digits.
func Grouped(n int64) termtext.Text {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return termtext.Text(s)
}

// Plural formats a number with a noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Quote quotes s for a shell.
func Quote(s string) string { return termtext.Quote(s) }

// A Row is a line of a table. A cell may hold colours, which have no width.
type Row []termtext.Text

// Table writes rows in columns.
func Table(to Printer, rows []Row) error {
	wide := widths(rows)
	var lines Page
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			b.WriteString(string(cell))
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", wide[i]-Width(cell)+gap))
			}
		}
		lines.Add(termtext.Text(strings.TrimRight(b.String(), " ")) + "\n")
	}
	return to.Write(lines.Text())
}

// Width counts the visible characters of text: colours have none.
func Width(text termtext.Text) int {
	n, escape := 0, false
	for _, r := range text {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n++
		}
	}
	return n
}

// SortedKeys returns the keys of m in order, so that output is deterministic.
func SortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// Head returns the first row of a table.
func Head(p Palette, titles ...termtext.Text) Row {
	for i := range titles {
		titles[i] = p.Dim(titles[i])
	}
	return titles
}

// Status formats a status in its colour.
func Status(p Palette, s sentinels.Status) termtext.Text {
	switch s {
	case sentinels.StatusCompleted:
		return p.Good(Escape(s))
	case sentinels.StatusRunning, "idle":
		return Escape(s)
	case sentinels.StatusQueued, sentinels.StatusPaused, sentinels.StatusWaiting:
		return p.Warn(Escape(s))
	}
	return p.Bad(Escape(s))
}
