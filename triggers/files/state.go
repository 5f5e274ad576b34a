package files

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// state is what a trigger keeps over a restart: no list of files, which would be
// too much for a workspace of thousands, but enough to know that something
// changed meanwhile.
type state struct {
	Mark Mark      `json:"mark"` // of the files as the newest fire told of them
	At   time.Time `json:"at"`
}

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

// slack is how much later than a file's own time a change may have been found
// and told of: the debounce at its longest, and the grain of file times.
const slack = 5 * time.Second

// missed returns what changed while nobody watched, nil for nothing. It rather
// tells of one change too many than of one too few: what happened is only known
// as far as the marks and the files' own times show it.
//
//   - With a mark of the newest fire, files that have the same mark now have not
//     changed.
//   - Without one, since the trigger was armed (Env.Since) nothing fired, so what
//     carries a later time changed while nobody watched. A deletion leaves no
//     trace then.
func (a *armed) missed(files []File, now Mark) *data {
	var since time.Time
	switch {
	case a.past != nil && a.past.Mark == now:
		return nil
	case a.past != nil:
		since = a.past.At.Add(-slack)
	case a.env.Since.IsZero() || a.env.Now().Sub(a.env.Since) < slack:
		return nil // just armed for the first time: what is there is the beginning
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
		case wants(Modified): // a new name cannot be told from new content
			d.add(f.Path, Modified)
		case wants(Created):
			d.add(f.Path, Created)
		}
	}
	found := len(d.Changes) > 0
	if a.past == nil {
		if !found {
			return nil
		}
		return &d
	}
	renamed := a.past.Mark.Names != now.Names
	switch {
	case wants(Created) && wants(Modified) && wants(Deleted):
	case wants(Modified) && (found || !renamed):
	case wants(Created) && found && renamed:
	case wants(Deleted) && renamed && untouched < a.past.Mark.Files:
	default:
		return nil
	}
	return &d
}
