package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Conditions as definitions have them. The second uses a regular expression,
// which the fast lane refuses.
const (
	fastSource  = `$build.success === true && $build.exitCode === 0 && $build.stdout.includes("passed")`
	childSource = `/^ok\b/m.test($build.stdout) || $build.exitCode > 0`
)

var conditionVars = map[string]json.RawMessage{
	"build": json.RawMessage(`{"success":true,"exitCode":0,"stdout":"12 tests passed\n","lines":["a","b","c"],"durationMs":1204}`),
}

func fastCondition(b *bench) (figure, error) { return b.condition(fastSource, 50) }

func childCondition(b *bench) (figure, error) {
	f, err := b.condition(childSource, 1)
	if abi.CodeOf(err) == abi.Unavailable {
		return skip(fmt.Sprintf("this program cannot start children: %v", err))
	}
	return f, err
}

// condition evaluates a source as a running sentinel does: compiled before,
// the variables as JSON.
func (b *bench) condition(source string, per int) (f figure, err error) {
	rt, err := runtime.Open(b.ctx, runtime.Options{})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	f.reference = "decoding its variables alone"
	if f.beside, err = repeat(b.count(500), time.Microsecond, 50, func() error {
		for range 50 {
			var v any
			if err := json.Unmarshal(conditionVars["build"], &v); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return f, err
	}
	probe := rt.Probe()
	f.samples, err = repeat(b.count(500), time.Microsecond, per, func() error {
		for range per {
			truthy, err := probe.Condition(b.ctx, source, conditionVars)
			if err != nil {
				return err
			}
			if truthy != (source == fastSource) {
				return fmt.Errorf("condition %q is %v", source, truthy)
			}
		}
		return nil
	})
	return f, err
}
