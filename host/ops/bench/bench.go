package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Options configure [Run]. The zero value measures everything and prints a
// table.
type Options struct {
	// Format is "table" or "json", one object a row. Default table.
	Format string
	// Only names the rows to measure. Default all.
	Only []string
	// Quick takes fewer samples and parks fewer runs: seconds in place of a
	// minute. Default false.
	Quick bool
	// Dir is on the disk that is measured; what is made in it is deleted.
	// Default: the folder for temporary files.
	Dir string
	// Binary is the program whose start is measured with its verb run; its
	// arguments must be those of sentinel. Default: this program if it is called
	// sentinel, else those rows are skipped.
	Binary string
}

// bench is one execution of Run.
type bench struct {
	ctx   context.Context
	opt   Options
	dir   string // of this execution alone
	cache string // compiled guests, shared by the rows that do not measure compiling
	warm  string // likewise as the binary keeps them, "" until they are needed
	made  int    // folders so far
}

// budgets are the design's, in the order in which they are measured: what
// leaves memory behind comes last.
var budgets = []budget{
	{"first-start", "hello sentinel in a new process, nothing compiled yet", "ms", 4000, 1500, atMost, firstStart},
	{"start", "hello sentinel in a new process, guest compiled before", "ms", 250, 100, atMost, start},
	{"idle", "resident memory of a serving process with nothing to do", "MB", 60, 35, atMost, idle},
	{"idle-run", "resident memory of a foreground run that waits", "MB", 60, 35, atMost, idleRun},
	{"scheduled", "processor that 1,000 schedules take which are not due", "% core", 1, 0.2, atMost, scheduled},
	{"fire", "lateness of 200 schedules due in the same second, p99", "ms", 50, 10, tail, fire},
	{"restart", "killed process with 10,000 runs that wait, until all are resumed", "ms", 2000, 1000, atMost, restart},
	{"reads", "steps that 64 runs lose to 1,000 API reads a second", "%", 10, 3, atMost, reads},
	{"live-file", "saved definition, until it is live", "ms", 1000, 250, tail, liveFile},
	{"live-plugin", "dropped small plugin, until it is live", "ms", 1000, 250, tail, livePlugin},
	{"live-api", "definition saved over the API, until it is live", "ms", 1000, 250, tail, liveAPI},
	{"edit", "step added to a running loop, until an iteration has it", "passes", 1, 1, allTimes, edit},
	{"feed", "events a second told to 500 watchers of 64 runs", "events/s", 5000, 20000, atLeast, watched},
	{"run", "run of 3 steps, each journaled with fsync", "ms", 4, 1, atMost, threeSteps},
	{"step", "built-in step on a pooled guest, without the commit", "us", 300, 100, atMost, pooledStep},
	{"fresh", "fresh instance of a small guest, describe to result", "us", 400, 150, atMost, freshGuest},
	{"ahead", "the same on an instance that was made ahead, as steps find it", "us", 400, 150, atMost, aheadGuest},
	{"condition", "condition in the fast lane", "us", 20, 5, atMost, fastCondition},
	{"condition-child", "condition in a child process", "us", 3000, 200, atMost, childCondition},
	{"throughput", "durable steps a second, 64 runs at once", "steps/s", 5000, 20000, atLeast, throughput},
	{"parked", "resident memory of 10,000 runs that wait", "MB", 200, 60, atMost, parked},
}

// Names returns the names of the rows.
func Names() []string {
	names := make([]string, len(budgets))
	for i, b := range budgets {
		names[i] = b.name
	}
	return names
}

// Run measures and prints one row after the other. Its error is that of a
// measurement that could not be made, never a slow one.
func Run(ctx context.Context, w io.Writer, opt Options) (err error) {
	for _, name := range opt.Only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("bench %q: unknown row, want one of %q", name, Names())
		}
	}
	write := writeTable
	switch opt.Format {
	case "", "table":
	case "json", "jsonl":
		write = writeJSON
	default:
		return fmt.Errorf("bench: format %q, want table or json", opt.Format)
	}
	dir, err := os.MkdirTemp(opt.Dir, "sentinel-bench-")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{ctx: ctx, opt: opt, dir: dir, cache: filepath.Join(dir, "cache")}
	return write(w, func(yield func(Row, error) bool) {
		for _, line := range budgets {
			if len(opt.Only) > 0 && !slices.Contains(opt.Only, line.name) {
				continue
			}
			f, err := line.measure(b)
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(Row{}, fmt.Errorf("bench %q: %w", line.name, err))
				return
			}
			if !yield(line.row(f), nil) {
				return
			}
		}
	})
}

// folder makes a folder for one measurement.
func (b *bench) folder() (string, error) {
	b.made++
	dir := filepath.Join(b.dir, fmt.Sprint(b.made))
	return dir, os.Mkdir(dir, 0o700)
}

// count is how often to measure.
func (b *bench) count(n int) int {
	if b.opt.Quick {
		return max(n/10, 3)
	}
	return n
}

func writeJSON(w io.Writer, rows func(func(Row, error) bool)) (failed error) {
	e := json.NewEncoder(w)
	rows(func(r Row, err error) bool {
		if failed = err; failed == nil {
			failed = e.Encode(r)
		}
		return failed == nil
	})
	return failed
}
