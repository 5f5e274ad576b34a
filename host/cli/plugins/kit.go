package plugins

import (
	"context"
	"errors"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abitest"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// kit checks a module against the clauses of the ABI that can be tested without knowing
// what its steps are for. A check that was not made has a reason and does not count
// as passed.
func (a verbs) kit(ctx context.Context, module []byte) (results []sdktest.Result, err error) {
	h, err := guest.Open(guest.Options{CacheDir: a.CacheDir()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	for _, o := range abitest.Check(ctx, guest.Kit(h, guest.LoadOptions{}), module) {
		r := sdktest.Result{
			Name: o.Clause + " " + o.Name, OK: len(o.Faults) == 0, Problems: o.Faults, Skipped: o.Skipped,
			DurationMs: float64(o.Took.Microseconds()) / 1000,
		}
		results = append(results, r)
		if err := a.showResult(r); err != nil {
			return nil, err
		}
	}
	return results, nil
}
