package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Limits of an expression.
const (
	maxLength   = 256
	minInterval = time.Second
)

var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Check reports what is wrong with a cron expression: five fields, or six with
// seconds first, or a descriptor such as "@daily" and "@every 5m", behind an
// optional zone "CRON_TZ=Europe/Berlin ".
func Check(expression string) error {
	schedule, err := parse(expression)
	if err != nil {
		return err
	}
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok && every.Delay < minInterval {
		return fmt.Errorf("cron expression %q: an interval under one second", expression)
	}
	// The library answers with the zero time when five years have no such day.
	if schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return fmt.Errorf("cron expression %q: there is no such day", expression)
	}
	return nil
}

// parse guards the library's parser, which panics on some input.
func parse(expression string) (schedule cron.Schedule, err error) {
	defer func() {
		if recover() != nil {
			schedule, err = nil, fmt.Errorf("cron expression %q: it cannot be read", expression)
		}
	}()
	if len(expression) > maxLength {
		return nil, fmt.Errorf("cron expression: longer than %d characters", maxLength)
	}
	text := strings.TrimSpace(expression)
	if text == "" {
		return nil, errors.New("cron expression: it is empty")
	}
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if zone, rest, found := strings.Cut(strings.TrimPrefix(text, prefix), " "); strings.HasPrefix(text, prefix) {
			if !found || strings.TrimSpace(rest) == "" {
				return nil, fmt.Errorf("cron expression %q: nothing behind the time zone", expression)
			}
			if _, err := time.LoadLocation(zone); err != nil || zone == "" {
				return nil, fmt.Errorf("cron expression %q: no time zone %q", expression, zone)
			}
		}
	}
	if strings.HasPrefix(text, "@every") {
		delay, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(text, "@every")))
		if err == nil && delay < minInterval {
			return nil, fmt.Errorf("cron expression %q: an interval under one second", expression)
		}
	}
	schedule, err = parser.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cron expression %q: %w", expression, err)
	}
	return schedule, nil
}
