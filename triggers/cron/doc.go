// Package cron is the trigger kind that fires on a schedule.
//
// Its parser is that of robfig/cron, wrapped: some input makes the library
// panic, and some that it accepts never fires or fires without pause. The
// calendar is our own, because the library leaves out what daylight saving
// skips and runs twice what it repeats; RATIONALE.md has the reasons.
package cron
