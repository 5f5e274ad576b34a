package files

import (
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Join returns the newer event with the changes of both, each path once in the order in
// which the paths changed first. The newer operation of a path counts, except that a
// file that was created and then modified is created.
func (a *armed) Join(older, newer *sentinels.Event) (*sentinels.Event, error) {
	var before, after data
	for _, one := range []struct {
		event *sentinels.Event
		into  *data
	}{{older, &before}, {newer, &after}} {
		if err := json.Unmarshal(one.event.Data, one.into); err != nil {
			return nil, fmt.Errorf("data of event %q: %w", one.event.ID, err)
		}
	}
	all := data{Paths: []string{}, Changes: []change{}, More: before.More + after.More, Offline: before.Offline || after.Offline}
	place := make(map[string]int, len(before.Changes))
	for _, c := range append(before.Changes, after.Changes...) {
		i, known := place[c.Path]
		switch {
		case !known:
			if all.add(c.Path, c.Op); len(all.Changes) > 0 && all.Changes[len(all.Changes)-1].Path == c.Path {
				place[c.Path] = len(all.Changes) - 1
			}
		case all.Changes[i].Op != Created || c.Op != Modified:
			all.Changes[i].Op = c.Op
		}
	}
	body, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	joined := *newer
	joined.Data = body
	return &joined, nil
}

var _ triggers.Joiner = (*armed)(nil)
