package sentinels

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// durationSuffix ends the keys whose values are milliseconds: a number, or a text such as
// "1.5s" that is stored as one.
const durationSuffix = "Ms"

// orDuration returns a schema of milliseconds that accepts such texts too.
func orDuration(schema map[string]any) map[string]any {
	out := maps.Clone(schema)
	if schema["type"] == "integer" {
		out["type"], out["pattern"] = []any{"integer", "string"}, durationPattern
		return out
	}
	text := map[string]any{"type": "string", "pattern": durationPattern}
	if list, ok := schema["anyOf"].([]any); ok {
		out["anyOf"] = slices.Insert(slices.Clone(list), len(list)-1, any(text)) // a reference is the last
		return out
	}
	for _, k := range []string{"description", "default", "examples"} {
		delete(out, k)
	}
	both := map[string]any{"anyOf": []any{out, text}}
	for _, k := range []string{"description", "default", "examples"} {
		if v, ok := schema[k]; ok {
			both[k] = v
		}
	}
	return both
}

// durationPattern is for the schema and for editors; [millisecondsIn] reads the text.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$`

// durationWord matches a duration as people write it: "5 minutes", "every 10 s".
var durationWord = lazyregexp.New(`(?i)^(?:every\s+|@every\s+)?([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d|msecs?|millis(?:econds?)?|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)$`)

// millisecondsIn returns the milliseconds of a text such as "5m", "1.5s", "1h30m" or "2d".
func millisecondsIn(text string) (ms int64, ok bool) {
	days := int64(0)
	if before, rest, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseFloat(before, 64)
		if err != nil || n < 0 || n > maxInteger/86_400_000 || strings.ContainsAny(before, "eExX_+-iIn") {
			return 0, false
		}
		if days = int64(n * 86_400_000); rest == "" {
			return days, true
		}
		text = rest
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d%time.Millisecond != 0 || strings.HasPrefix(text, "+") {
		return 0, false
	}
	return days + d.Milliseconds(), true
}

// asDuration changes a text in the place of milliseconds to their number. It leaves every
// other value as it is.
func asDuration(n *node) {
	if n.Kind != '"' {
		return
	}
	if ms, ok := millisecondsIn(n.Text); ok {
		n.Kind, n.Text = '0', strconv.FormatInt(ms, 10)
	}
}

// Duration returns the milliseconds of a text such as "5m" that is given for a key whose values are milliseconds,
// and whether it is one.
func Duration(key, text string) (ms int64, ok bool) {
	if !strings.HasSuffix(key, durationSuffix) {
		return 0, false
	}
	return millisecondsIn(text)
}

// shortDuration returns a duration that people write with words, or with a space, as a text
// that is one: "5 minutes" as "5m"; "" for any other text.
func shortDuration(text string) string {
	m := durationWord.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return ""
	}
	unit := strings.ToLower(m[2])
	if strings.HasPrefix(unit, "ms") || strings.HasPrefix(unit, "milli") {
		return m[1] + "ms"
	}
	return m[1] + unit[:1]
}

// durationHint returns the hint for a text in the place of milliseconds that is none.
func durationHint(text string) string {
	if short := shortDuration(text); short != "" {
		return fmt.Sprintf("write %q", short)
	}
	return `write milliseconds, or a text such as "90s", "5m" or "1h30m"`
}
