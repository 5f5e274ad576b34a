package cron

import "time"

// Plan exports plan to the tests.
type Plan struct{ p plan }

func ParsePlan(expression string, zone *time.Location, since time.Time) (Plan, error) {
	p, err := parse(expression, zone, since)
	return Plan{p}, err
}

func (p Plan) Next(after time.Time) time.Time               { return p.p.next(after) }
func (p Plan) Count(after, until time.Time) int             { return p.p.count(after, until) }
func (p Plan) Back(after, until time.Time, k int) time.Time { return p.p.back(after, until, k) }
