// Package cron implements the trigger kind that fires on a schedule.
//
// It parses each field of an expression with robfig/cron and adds checks: some
// input makes the library panic, and some that it accepts never fires or fires
// continuously. It computes planned times itself, because the library does not
// fire at times that daylight saving skips, and fires twice at times that it
// repeats. RATIONALE.md gives the reasons.
package cron
