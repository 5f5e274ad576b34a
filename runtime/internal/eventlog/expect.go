package eventlog

import (
	"bytes"
	"sync"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxExpected bounds the patterns that are kept. With more, every name is expected.
const maxExpected = 1000

// Expected are the patterns that readers of a log may have. A log of events that are
// written only for readers asks it before an event is made.
//
// # Concurrency
//
// Safe for concurrent use.
type Expected struct {
	load sync.Once
	from func(*Expected)

	mu       sync.Mutex
	all      bool
	patterns map[string]int // how many sources have it
	bySource map[string][]string
}

// NewExpected returns patterns that load adds to when they are first asked for.
func NewExpected(load func(*Expected)) *Expected { return &Expected{from: load} }

// Add expects events that match a pattern from now on.
func (x *Expected) Add(pattern string) { x.Set("reader "+pattern, pattern) }

// Set expects events that match the patterns of a source, in place of those that the
// source had before.
func (x *Expected) Set(source string, patterns ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all || len(patterns) == 0 && x.bySource[source] == nil {
		return
	}
	if x.patterns == nil {
		x.patterns, x.bySource = map[string]int{}, map[string][]string{}
	}
	for _, p := range x.bySource[source] {
		if x.patterns[p]--; x.patterns[p] == 0 {
			delete(x.patterns, p)
		}
	}
	delete(x.bySource, source)
	if len(patterns) > 0 {
		x.bySource[source] = patterns
	}
	for _, p := range patterns {
		x.patterns[p]++
	}
	x.all = x.all || len(x.patterns) > maxExpected
}

// Has reports whether a reader may expect an event with a name.
func (x *Expected) Has(name string) bool {
	x.load.Do(func() { x.from(x) })
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all {
		return true
	}
	for p := range x.patterns {
		if sentinels.MatchEvent(p, name) {
			return true
		}
	}
	return false
}

// RunPatterns returns the patterns of events of runs that the JSON of a definition may
// wait for. A pattern that is made of a variable is unknown, so it stands for any.
func RunPatterns(definition []byte) []string {
	var found []string
	if bytes.Contains(definition, []byte(`"event":"$`)) {
		found = append(found, sentinels.RunEventPrefix+"*:*")
	}
	for rest := definition; ; {
		_, text, ok := bytes.Cut(rest, []byte(`"`+sentinels.RunEventPrefix))
		if !ok {
			return found
		}
		name, after, ok := bytes.Cut(text, []byte(`"`))
		if !ok {
			return found
		}
		rest = after
		switch pattern := sentinels.RunEventPrefix + string(name); {
		case bytes.ContainsAny(name, `$\`):
			found = append(found, sentinels.RunEventPrefix+"*:*")
		case sentinels.IsRunEvent(pattern):
			found = append(found, pattern)
		}
	}
}
