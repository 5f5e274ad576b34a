package cron

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	// Zones must be available on every machine; see RATIONALE.md.
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

// descriptors are names of common schedules, with their six fields.
var descriptors = map[string]string{
	"@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *", "@weekly": "0 0 0 * * 0",
	"@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 0 * * * *",
}

// Check reports the problem of a cron expression. Valid are five fields, six with
// seconds first, and a descriptor such as "@daily", "@every 5m" or "every 5m", each after an
// optional zone "CRON_TZ=Europe/Berlin ".
func Check(expression string) error {
	_, err := parse(expression, nil, time.Time{})
	return err
}

// parse parses an expression. zone is that of the trigger's options, nil for
// none. An expression with a zone of its own is an error if zone is not nil.
// "@every" counts from since.
func parse(expression string, zone *time.Location, since time.Time) (plan, error) {
	if len(expression) > maxLength {
		return nil, fmt.Errorf("cron expression: longer than %d characters", maxLength)
	}
	text := strings.TrimSpace(expression)
	if text == "" {
		return nil, errors.New("cron expression: empty")
	}
	text, own, err := cutZone(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cron expression %q: %w", expression, err)
	case own != nil && zone != nil:
		return nil, fmt.Errorf("cron expression %q: time zone given both in the expression and in timeZone", expression)
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

// parsePlan parses an expression without its zone. Every plan that it returns has
// planned times, at most one a second.
func parsePlan(text string, zone *time.Location, since time.Time) (plan, error) {
	// "every 5m" is the form of the original system.
	if rest, is := cutEvery(text); is {
		return parseInterval(rest, since)
	}
	if strings.HasPrefix(text, "@") {
		long, ok := descriptors[strings.ToLower(text)]
		switch {
		case strings.EqualFold(text, "@reboot"):
			return nil, errors.New(`"@reboot" is not a schedule: use a trigger of type "immediate" with "on": "start"`)
		case !ok:
			return nil, fmt.Errorf("unknown descriptor %q: want @yearly, @monthly, @weekly, @daily, @hourly or @every 5m", text)
		}
		text = long
	}
	f, err := parseFields(strings.Fields(text))
	if err != nil {
		return nil, err
	}
	c := &calendar{fields: f, zone: zone, elapsed: f.hour == everyHour}
	// The check runs in UTC, where no day lacks a time.
	utc := calendar{fields: f, zone: time.UTC, elapsed: true}
	if utc.next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("the date never occurs")
	}
	return c, nil
}

// cutEvery returns the duration of "@every D" and "every D", in any case of the word.
func cutEvery(text string) (duration string, is bool) {
	word, rest, _ := strings.Cut(text, " ")
	return strings.TrimSpace(rest), strings.EqualFold(strings.TrimPrefix(word, "@"), "every")
}

// warnings returns what is probably a mistake in an expression that can be parsed: a step
// that is longer than its field, as in "*/90 * * * *", which fires once an hour.
func warnings(expression string) (list []string) {
	text, _, err := cutZone(strings.TrimSpace(expression))
	if _, every := cutEvery(text); err != nil || every || strings.HasPrefix(text, "@") {
		return nil
	}
	words := strings.Fields(text)
	for i, word := range words {
		r := fieldRanges[i+len(fieldRanges)-len(words)]
		for item := range strings.SplitSeq(word, ",") {
			_, text, _ := strings.Cut(item, "/")
			if step, err := strconv.Atoi(text); err == nil && step > r.max-r.min && step > 1 {
				list = append(list, fmt.Sprintf("cron expression %q: the step %d is longer than the %s, so %q has one value; for other intervals write @every", expression, step, r.name, item))
			}
		}
	}
	return list
}

// cutZone splits the zone off the front of an expression.
func cutZone(text string) (rest string, zone *time.Location, err error) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		after, ok := strings.CutPrefix(text, prefix)
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(after, " ")
		if rest = strings.TrimSpace(rest); rest == "" {
			return "", nil, errors.New("no fields after the time zone")
		}
		zone, err := loadZone(name)
		return rest, zone, err
	}
	return text, nil, nil
}

// loadZone returns a zone by its name. An empty name, which means UTC in the
// standard library, is refused as a probable mistake.
func loadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil, fmt.Errorf("unknown time zone %q: want a name such as Europe/Berlin or UTC", name)
	}
	return zone, nil
}

// parseInterval parses the duration of "@every". The library is not used because
// it silently rounds 1.5 s to 1 s.
func parseInterval(text string, since time.Time) (plan, error) {
	every, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("invalid duration %q: want one such as 90s, 5m or 1h30m", text)
	case every < minInterval:
		return nil, errors.New("interval is shorter than one second")
	case every > maxInterval:
		return nil, errors.New("interval is longer than ten years")
	case every%time.Millisecond != 0:
		return nil, errors.New("interval is not a whole number of milliseconds")
	}
	return interval{since: since.Truncate(time.Second), every: every}, nil
}

// fieldRanges are the fields in the order of an expression.
var fieldRanges = []struct {
	name     string
	min, max int
}{{"second", 0, 59}, {"minute", 0, 59}, {"hour", 0, 23}, {"day of the month", 1, 31}, {"month", 1, 12}, {"day of the week", 0, 7}}

// parseFields parses five fields, or six with seconds first.
func parseFields(list []string) (fields, error) {
	switch len(list) {
	case 5:
		list = slices.Insert(slices.Clone(list), 0, "0")
	case 6:
	default:
		return fields{}, fmt.Errorf("%d fields: want five, or six with seconds first", len(list))
	}
	const date, weekday = 3, 5
	either := !isStar(list[date]) && !isStar(list[weekday])
	list[weekday] = weekdays(list[weekday])
	all := [6]uint64{}
	for i, text := range list {
		// Fields are parsed one at a time, so that the error can name the field.
		only := []string{"*", "*", "*", "*", "*", "*"}
		only[i] = text
		spec, err := parseSpec(text, only)
		if err != nil {
			p := fieldRanges[i]
			return fields{}, fmt.Errorf("invalid %s %q: want %d to %d, *, lists 1,2, ranges 1-5 or steps */2", p.name, text, p.min, p.max)
		}
		all[i] = []uint64{spec.Second, spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow}[i] &^ (1 << 63) // the bit with which the library marks a star
	}
	return fields{all[0], all[1], all[2], all[3], all[4], all[5], either}, nil
}

// isStar reports whether a day field leaves the choice of days to the other one.
func isStar(field string) bool { return field[0] == '*' || field[0] == '?' }

// parseSpec wraps the library's parser, which panics on some input and accepts
// signs and empty list items.
func parseSpec(text string, list []string) (spec *cron.SpecSchedule, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("parser panicked")
		}
	}()
	const letters = "0123456789*?,-/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if strings.Trim(text, letters) != "" || slices.Contains(strings.Split(text, ","), "") {
		return nil, errors.New("invalid character or empty list item")
	}
	schedule, err := parser.Parse(strings.Join(list, " "))
	if err != nil {
		return nil, err
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("not a list of fields")
	}
	return spec, nil
}
