package pluginset

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A classifier that reached its time limit so often in a row is not asked for a while: its
// callers may hold locks.
const (
	maxTimeouts  = 3
	suspendedFor = 10 * time.Minute
)

// faults keep what went wrong with classifiers, by digest and step type.
type faults struct {
	mu     sync.Mutex
	byType map[string]*fault
}

type fault struct {
	logged   bool
	timeouts int // in a row
	until    time.Time
}

// of returns the fault of a classifier. The caller holds the mutex.
func (f *faults) of(p plugin.Provided) *fault {
	key := p.Digest + " " + string(p.Type)
	if f.byType[key] == nil {
		if f.byType == nil {
			f.byType = map[string]*fault{}
		}
		f.byType[key] = &fault{}
	}
	return f.byType[key]
}

// suspended reports whether a classifier is not asked now.
func (f *faults) suspended(p plugin.Provided) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Before(f.of(p).until)
}

// note notes the end of a call and reports whether its error is to be logged, which is
// the case once for each version of a plugin.
func (f *faults) note(p plugin.Provided, err error) (log bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.of(p)
	if abi.CodeOf(err) != abi.Timeout {
		x.timeouts = 0
	} else if x.timeouts++; x.timeouts >= maxTimeouts {
		x.timeouts, x.until = 0, time.Now().Add(suspendedFor)
	}
	log = err != nil && !x.logged
	x.logged = x.logged || err != nil
	return log
}

// classify calls a classifier. An error, a time limit or an output that violates the
// contract is logged once for each version of the plugin; ok is false then, as if the
// classifier did not know.
func (s *Set) classify(ctx context.Context, p plugin.Provided, fields any, memory int64) (output json.RawMessage, ok bool) {
	if s.faults.suspended(p) {
		return nil, false
	}
	text, err := json.Marshal(fields)
	if err == nil {
		output, err = s.Evaluate(ctx, p.As, p.Type, text, memory)
	}
	if err != nil && ctx.Err() != nil {
		return nil, false // not the fault of the plugin
	}
	if s.faults.note(p, err) {
		s.opt.Log.Warn("classifier of a plugin failed and counts as not knowing", "plugin", p.Plugin, "stepType", p.Type, "digest", p.Digest, "error", err)
	}
	return output, err == nil
}

// ClassifyError asks the error classifiers, by the names of their plugins, until one knows
// the error. memory is the limit in bytes of a guest whose grant has none.
func (s *Set) ClassifyError(ctx context.Context, f role.Failure, memory int64) *role.ErrorClass {
	for _, p := range s.Provided(abi.RoleErrorClassifier) {
		output, ok := s.classify(ctx, p, f, memory)
		if !ok {
			continue
		}
		if c, err := role.ReadErrorClass(output); err == nil && c != nil {
			return c
		}
	}
	return nil
}

// ClassifyLines asks an output classifier about at most [role.MaxLines] lines. The answer
// has an entry for each line, nil where the classifier does not know it or failed.
func (s *Set) ClassifyLines(ctx context.Context, name sentinels.StepType, lines []role.Line, memory int64) []*role.LineClass {
	for _, p := range s.Provided(abi.RoleOutputClassifier) {
		if p.Type != name {
			continue
		}
		if output, ok := s.classify(ctx, p, role.Lines{Lines: lines}, memory); ok {
			if classes, err := role.ReadLineClasses(output, len(lines)); err == nil {
				return classes
			}
		}
	}
	return make([]*role.LineClass, len(lines))
}
