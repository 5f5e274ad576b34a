package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	// Zones have to be known on every machine: see RATIONALE.md.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

// Limits of an expression.
const (
	maxLength   = 256
	minInterval = time.Second
	maxInterval = 10 * 366 * 24 * time.Hour
)

var parser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// descriptors are the names of frequent schedules, in six fields.
var descriptors = map[string]string{
	"@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *", "@weekly": "0 0 0 * * 0",
	"@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 0 * * * *",
}

// Check reports what is wrong with a cron expression: five fields, or six with
// seconds first, or a descriptor such as "@daily" and "@every 5m", behind an
// optional zone "CRON_TZ=Europe/Berlin ".
func Check(expression string) error {
	_, err := parse(expression, nil, time.Time{})
	return err
}

// parse reads an expression. zone is that of the trigger's options, nil for
// none; an expression that brings one of its own then is an error. since is what
// "@every" counts from.
func parse(expression string, zone *time.Location, since time.Time) (plan, error) {
	if len(expression) > maxLength {
		return nil, fmt.Errorf("cron expression: longer than %d characters", maxLength)
	}
	text := strings.TrimSpace(expression)
	if text == "" {
		return nil, errors.New("cron expression: it is empty")
	}
	text, own, err := cutZone(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cron expression %q: %w", expression, err)
	case own != nil && zone != nil:
		return nil, fmt.Errorf("cron expression %q: the time zone stands in it and in timeZone", expression)
	case own != nil:
		zone = own
	case zone == nil:
		zone = time.Local
	}
	p, err := parsePlan(text, zone, since)
	if err != nil {
		return nil, fmt.Errorf("cron expression %q: %w", expression, err)
	}
	return p, nil
}

// parsePlan reads what is left once the zone is known. Everything it accepts
// fires at some time, and never faster than once a second.
func parsePlan(text string, zone *time.Location, since time.Time) (plan, error) {
	if word, rest, _ := strings.Cut(text, " "); word == "@every" {
		return parseInterval(strings.TrimSpace(rest), since)
	}
	if strings.HasPrefix(text, "@") {
		long, ok := descriptors[text]
		switch {
		case text == "@reboot":
			return nil, errors.New(`no schedule; a trigger of type "immediate" with "on": "start" fires at each start`)
		case !ok:
			return nil, fmt.Errorf("there is no %q; there are @yearly, @monthly, @weekly, @daily, @hourly and @every 5m", text)
		}
		text = long
	}
	f, err := parseFields(strings.Fields(text))
	if err != nil {
		return nil, err
	}
	c := &calendar{fields: f, zone: zone, elapsed: f.hour == everyHour}
	// In UTC, where every day there is has all its times.
	utc := calendar{fields: f, zone: time.UTC, elapsed: true}
	if utc.next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("there is no such day")
	}
	return c, nil
}

// cutZone takes the zone off the front of an expression.
func cutZone(text string) (rest string, zone *time.Location, err error) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		after, ok := strings.CutPrefix(text, prefix)
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(after, " ")
		if rest = strings.TrimSpace(rest); rest == "" {
			return "", nil, errors.New("nothing behind the time zone")
		}
		zone, err := loadZone(name)
		return rest, zone, err
	}
	return text, nil, nil
}

// loadZone finds a zone by its name. The empty name, which the standard library
// takes for UTC, is more likely a mistake.
func loadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil, fmt.Errorf("no time zone %q; write one such as Europe/Berlin or UTC", name)
	}
	return zone, nil
}

// parseInterval reads the duration of "@every". The library would round one of
// 1.5 s to a second without a word.
func parseInterval(text string, since time.Time) (plan, error) {
	every, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no duration such as 90s, 5m or 1h30m", text)
	case every < minInterval:
		return nil, errors.New("an interval under one second")
	case every > maxInterval:
		return nil, errors.New("an interval over ten years")
	case every%time.Millisecond != 0:
		return nil, errors.New("an interval finer than a millisecond")
	}
	return interval{since: since.Truncate(time.Second), every: every}, nil
}

// places are the fields in the order in which they are written.
var places = []struct {
	name     string
	min, max int
}{{"second", 0, 59}, {"minute", 0, 59}, {"hour", 0, 23}, {"day of the month", 1, 31}, {"month", 1, 12}, {"day of the week", 0, 7}}

// parseFields reads five fields, or six with seconds first.
func parseFields(list []string) (fields, error) {
	switch len(list) {
	case 5:
		list = slices.Insert(slices.Clone(list), 0, "0")
	case 6:
	default:
		return fields{}, fmt.Errorf("%d fields; there are five, or six with seconds first", len(list))
	}
	const date, weekday = 3, 5
	either := !isStar(list[date]) && !isStar(list[weekday])
	list[weekday] = weekdays(list[weekday])
	all := [6]uint64{}
	for i, text := range list {
		// One by one, so that the error can name the field.
		only := []string{"*", "*", "*", "*", "*", "*"}
		only[i] = text
		spec, err := parseSpec(text, only)
		if err != nil {
			p := places[i]
			return fields{}, fmt.Errorf("%s %q cannot be read; it can be %d to %d, *, lists 1,2, ranges 1-5 and steps */2", p.name, text, p.min, p.max)
		}
		all[i] = []uint64{spec.Second, spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow}[i] &^ (1 << 63) // the library's mark for a star
	}
	return fields{all[0], all[1], all[2], all[3], all[4], all[5], either}, nil
}

// isStar reports whether a field leaves the choice of the day to the other one.
func isStar(field string) bool { return field[0] == '*' || field[0] == '?' }

// parseSpec guards the library's parser, which panics on some input and takes
// empty parts of lists and signs.
func parseSpec(text string, list []string) (spec *cron.SpecSchedule, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the parser failed")
		}
	}()
	const letters = "0123456789*?,-/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if strings.Trim(text, letters) != "" || slices.Contains(strings.Split(text, ","), "") {
		return nil, errors.New("no field")
	}
	schedule, err := parser.Parse(strings.Join(list, " "))
	if err != nil {
		return nil, err
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("no fields")
	}
	return spec, nil
}
