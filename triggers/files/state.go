package files

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/pathtext"
)

// state is what a trigger stores with each firing. It has no list of files, which
// would be too large for big workspaces, but enough to detect that something
// changed during a downtime.
type state struct {
	Fingerprint Fingerprint `json:"mark"` // of the files at the newest firing
	At          time.Time   `json:"at"`
}

// readState returns nil without a state.
func readState(raw json.RawMessage) (*state, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("read state of file trigger: %w", err)
	}
	return &s, nil
}

// slack is the longest delay between the change time of a file and the firing
// that reports it: the maximum debounce plus the granularity of file times.
const slack = 5 * time.Second

// missed returns the changes since the newest firing, which happened while the
// trigger was not running; nil for none. Fingerprints and file times are the only
// evidence, and in doubt a change is reported.
//
//   - With a stored fingerprint, an equal one now means no change.
//   - Without one, nothing has fired since the trigger was first armed
//     (Env.Since), so files with a later change time have changed. Deletions
//     cannot be detected in this case.
func (a *armed) missed(files []File, now Fingerprint) *data {
	var since time.Time
	switch {
	case a.last != nil && a.last.Fingerprint == now:
		return nil
	case a.last != nil:
		since = a.last.At.Add(-slack)
	case a.env.Since.IsZero() || a.env.Now().Sub(a.env.Since) < slack:
		return nil // just armed for the first time: existing files are the baseline
	default:
		since = a.env.Since
	}
	wants := func(op Op) bool { return slices.Contains(a.fields.On, op) }
	d := data{Offline: true, Paths: []string{}, Changes: []change{}}
	untouched := 0
	for _, f := range files {
		switch {
		case !f.Changed.After(since):
			untouched++
		case wants(Modified): // a new file cannot be distinguished from new content
			d.add(pathtext.Encode(f.Path), Modified)
		case wants(Created):
			d.add(pathtext.Encode(f.Path), Created)
		}
	}
	found := len(d.Changes) > 0
	if a.last == nil {
		if !found {
			return nil
		}
		return &d
	}
	renamed := a.last.Fingerprint.Names != now.Names
	switch {
	case wants(Created) && wants(Modified) && wants(Deleted):
	case wants(Modified) && (found || !renamed):
	case wants(Created) && found && renamed:
	case wants(Deleted) && renamed && untouched < a.last.Fingerprint.Files:
	default:
		return nil
	}
	return &d
}
