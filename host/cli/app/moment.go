package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/config"
)

// Past reads the value of a flag such as --since: how long ago, a day or a time.
func (a *App) Past(flag, text string) (time.Time, error) {
	return a.moment(flag, text, -1, "such as 2h, 7d, yesterday, monday, 2026-01-31 or 2026-01-31T09:30:00Z")
}

// Future reads the value of a flag such as --until: a duration from now, a day or a time.
func (a *App) Future(flag, text string) (time.Time, error) {
	t, err := a.moment(flag, text, 1, "such as 2h, 7d, tomorrow, monday, 2026-01-31 or 2026-01-31T09:30:00Z")
	if err == nil && !t.After(a.Env.Now()) {
		err = NewUsageError(fmt.Sprintf("invalid %s %q: that time is over", flag, text), "")
	}
	return t, err
}

// Length reads the value of a flag such as --for: a duration above 0.
func Length(flag, text string) (time.Duration, error) {
	var d config.Duration
	if err := d.UnmarshalText([]byte(text)); err != nil || d == 0 {
		return 0, NewUsageError(fmt.Sprintf("invalid %s %q: want a duration", flag, text), "such as 90m, 2h or 7d")
	}
	return d.Std(), nil
}

// moment reads a time in the past, with the sign -1, or in the future, with 1. A day is its
// beginning in the zone of this host, and the name of a weekday the nearest such day but today.
func (a *App) moment(flag, text string, sign int, hint string) (time.Time, error) {
	now := a.Env.Now()
	var d config.Duration
	if d.UnmarshalText([]byte(text)) == nil {
		return now.Add(time.Duration(sign) * d.Std()), nil
	}
	days := map[string]int{"today": 0, "yesterday": -1, "tomorrow": 1}
	for i := range 7 {
		day := strings.ToLower(now.AddDate(0, 0, sign*(i+1)).Weekday().String())
		days[day], days[day[:3]] = sign*(i+1), sign*(i+1)
	}
	if n, ok := days[strings.ToLower(text)]; ok {
		year, month, day := now.Local().Date()
		return time.Date(year, month, day+n, 0, 0, 0, 0, time.Local), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, NewUsageError(fmt.Sprintf("invalid %s %q: want a duration, a day or a time", flag, text), hint)
}
