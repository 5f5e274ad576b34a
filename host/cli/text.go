package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// shortID is the end of a run's id: ids begin with the time, so their ends are
// what tells runs of one moment apart.
func shortID(id sentinels.RunID) string {
	s := string(id)
	return s[max(0, len(s)-8):]
}

// clip shortens text to n characters on one line.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:max(0, n-1)]) + "…"
}

// duration is d as a person reads it: 0.4ms, 12ms, 1.2s, 3m05s, 2h07m.
func duration(d time.Duration) string {
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

// clock is d in whole seconds, for a line that changes once a second.
func clock(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	}
	return duration(d)
}

// millis is a time as JSON has it.
func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// ago is how long ago t was, in one unit.
func ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

// spent is what models cost, empty when there was no call.
func spent(u sentinels.Usage) string {
	if u.Calls == 0 && u.InputTokens+u.OutputTokens == 0 {
		return ""
	}
	s := grouped(u.InputTokens+u.OutputTokens) + " tokens"
	if u.CostUSD > 0 {
		s += fmt.Sprintf(" $%.4f", u.CostUSD)
	}
	return s
}

// grouped writes a number with a comma every three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural counts things in words.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// quoted is s as a shell takes it back.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=+,@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// table writes rows in columns; the first row is the head. A cell may hold
// colours, which take no room.
func table(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], visible(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-visible(cell)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, trimLines(b.String()))
	return err
}

// trimLines takes off what fills up the last column.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// visible counts the characters of s that take room, colours aside.
func visible(s string) int {
	n, escape := 0, false
	for _, r := range s {
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

// writeJSON writes v to standard output: indented for people who asked for
// json, on one line for jsonl.
func (a *app) writeJSON(v any) error {
	e := json.NewEncoder(a.env.Stdout)
	e.SetEscapeHTML(false)
	if a.flags.output != asJSONL {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}

// writeItems writes a list in the form that was asked for: whole as json, an item
// a line as jsonl. done is false where people want a table, which is the
// caller's to draw.
func writeItems[T any](a *app, whole any, items []T) (done bool, err error) {
	switch a.flags.output {
	case asJSON:
		return true, a.writeJSON(whole)
	case asJSONL:
		for _, item := range items {
			if err := a.writeJSON(item); err != nil {
				return true, err
			}
		}
		return true, nil
	}
	return false, nil
}

// writeLine writes v as one line of JSON, whatever the form: for output that does
// not end by itself.
func (a *app) writeLine(v any) error {
	e := json.NewEncoder(a.env.Stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
