package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A door says whether this process takes runs in from others. It does while it
// carries out one itself; any other verb is about to end, and a run that it took
// in would be left to nobody.
//
// # Concurrency
//
// Safe for concurrent use. shut returns when those who came in are through.
type door struct {
	mu sync.RWMutex
	up bool

	takenMu sync.Mutex
	taken   []sentinels.RunID // runs that came in
}

// open lets runs in; it may be open already.
func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.up = true
}

// shut lets no more in, and returns when those who were on their way are.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.up = false
}

// take notes the run that a command's answer names. The engine lists a run once
// its beginning is durable, and that may be a moment later.
func (d *door) take(answer json.RawMessage) {
	if id := runIn(answer); id != "" {
		d.takenMu.Lock()
		defer d.takenMu.Unlock()
		d.taken = append(d.taken, id)
	}
}

// inside returns the runs that came in.
func (d *door) inside() []sentinels.RunID {
	d.takenMu.Lock()
	defer d.takenMu.Unlock()
	return slices.Clone(d.taken)
}

// runIn is the run that the answer of a command in takesRun names.
func runIn(answer json.RawMessage) sentinels.RunID {
	var out struct {
		Run sentinels.RunID `json:"run"`
		ID  sentinels.RunID `json:"id"`
	}
	if json.Unmarshal(answer, &out) != nil {
		return ""
	}
	return cmp.Or(out.Run, out.ID)
}

// takesRun are the commands that give a process a run to carry out.
var takesRun = map[string]bool{"sentinel/start": true, "sentinel/resume": true, "sentinel/retry": true, "sentinel/fork": true}

// answer is what another process has this one do.
func (s *session) answer(ctx context.Context, name string, params json.RawMessage) (json.RawMessage, error) {
	if !takesRun[name] {
		return s.host.Call(ctx, name, params)
	}
	s.door.mu.RLock()
	defer s.door.mu.RUnlock()
	if !s.door.up {
		return nil, &abi.Error{Code: abi.Unavailable, Message: "the process that has the store is about to end and takes no run", Hint: "try again"}
	}
	out, err := s.host.Call(ctx, name, params)
	if err == nil {
		s.door.take(out)
	}
	return out, err
}
