package runtime

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// countCrash counts a crash against every step that was executing when the host
// went down, and not against those that only waited.
func (r *run) countCrash() {
	if r.hist == nil {
		r.info.Crashes = nil
	}
	if r.hist == nil || !r.rt.unclean {
		return
	}
	asked := map[string]bool{}
	for _, q := range r.info.Asks {
		asked[q.Call] = true
	}
	crashes := map[string]int{} // a step that ended since is blamed no more
	for key, e := range r.hist.execs {
		path := pathOf(key)
		if e.end != nil || e.last == 0 {
			continue
		}
		crashes[path] = max(crashes[path], r.info.Crashes[path])
		if a := e.attempts[e.last]; e.retry == nil && a != nil && a.executing(path, asked) {
			crashes[path] = r.info.Crashes[path] + 1
		}
	}
	r.info.Crashes = crashes
}

// pathOf returns the execution path of what [execKey] has named.
func pathOf(key string) string {
	path, _, _ := strings.Cut(key, "@")
	return path
}

// quarantine returns the step for which a restored run ends at once, nil if
// there is none.
func (r *run) quarantine() *Quarantine {
	if r.hist == nil {
		return nil
	}
	for key, e := range r.hist.execs {
		path := pathOf(key)
		if n := r.info.Crashes[path]; e.end == nil && e.last != 0 && e.retry == nil && n >= r.rt.limits.Crashes {
			return &Quarantine{r.id, r.begin.Sentinel, path, n}
		}
	}
	return nil
}

// executing reports whether the attempt did something itself when its records
// stop: its guest ran, or an effect was under way about which nobody was asked.
func (a *attemptHistory) executing(path string, asked map[string]bool) bool {
	for seq, c := range a.calls {
		if c.end == nil && c.start != nil {
			return c.start.Effect && !asked[askName(path, seq)]
		}
	}
	return true
}

// poisoned says whether a step took the process down too often to try it again.
func (r *run) poisoned(path, address string) error {
	r.mu.Lock()
	n := r.info.Crashes[path]
	r.mu.Unlock()
	if n < r.rt.limits.Crashes {
		return nil
	}
	return &quarantineError{&abi.Error{Code: abi.Limit, Permanent: true,
		Message: fmt.Sprintf("step %s was executing at %d crashes of the host, so the run is quarantined", address, n),
		Hint:    "look at the step's trace; start the sentinel again when its cause is mended",
	}}
}
