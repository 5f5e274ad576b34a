package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// maxListed limits the changes that an event lists. Further changes are counted.
const maxListed = 1000

// armed is one file trigger. Only the goroutine of Run uses it.
type armed struct {
	kind   *Kind
	fields fields
	env    triggers.Env
	last   *state // of the newest firing; nil before the first
}

// data is the data of the event, clause T7.2.
type data struct {
	Paths   []string `json:"paths"`
	Changes []change `json:"changes"`
	// More counts changes that are not listed.
	More int `json:"more,omitempty"`
	// Offline means that the changes happened while the trigger was not running,
	// usually because the host was down. Changes then lists the files with a later
	// change time, and no deleted files.
	Offline bool `json:"offline,omitempty"`
}

type change struct {
	Path string `json:"path"`
	Op   Op     `json:"op"`
}

// Run watches files and fires until ctx ends. When the runtime calls it again
// after an error, it finds the changes in between as after a restart.
func (a *armed) Run(ctx context.Context, fire triggers.FireFunc) error {
	w, release := a.kind.acquire(a.env.Workspace, a.env.Logger)
	defer release()
	sub, err := w.Subscribe(ctx, Query{Patterns: a.fields.Paths, Ignore: a.fields.Ignore, Settle: a.fields.settle()})
	if err != nil {
		return errUnlessEnded(ctx, err)
	}
	defer sub.Close()
	files, fingerprint := sub.Files()
	if missed := a.missed(files, fingerprint); missed != nil {
		if err := a.fire(ctx, fire, *missed, nil, fingerprint); err != nil {
			return errUnlessEnded(ctx, err)
		}
	}
	for {
		batch, err := sub.Next(ctx)
		if err != nil {
			return errUnlessEnded(ctx, err)
		}
		var d data
		var times []time.Time
		for _, c := range batch.Changes {
			if slices.Contains(a.fields.On, c.Op) {
				d.add(pathtext.Encode(c.Path), c.Op)
				times = append(times, c.at)
			}
		}
		if len(d.Changes) == 0 {
			continue // only operations that are not in "on"; nothing is stored
		}
		if err := a.fire(ctx, fire, d, times, batch.Fingerprint); err != nil {
			return errUnlessEnded(ctx, err)
		}
	}
}

// errUnlessEnded returns err, or nil if ctx has ended and so caused it.
func errUnlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// add lists a change; path is as [pathtext.Encode] writes it.
func (d *data) add(path string, op Op) {
	if len(d.Changes) == maxListed {
		d.More++
		return
	}
	d.Paths = append(d.Paths, path)
	d.Changes = append(d.Changes, change{path, op})
}

// Backoff between attempts of a firing that was not decided.
const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// fire repeats a firing until it is decided. The subscription merges the changes
// that happen meanwhile. times is when the changes were made, nil if that is unknown.
func (a *armed) fire(ctx context.Context, fire triggers.FireFunc, d data, times []time.Time, fingerprint Fingerprint) error {
	at := a.env.Now()
	next := state{Fingerprint: fingerprint, At: at}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", a.env.Sentinel, a.env.Name, body, at.UnixNano()))
	id := hex.EncodeToString(sum[:16])
	f := triggers.Firing{At: at, State: raw, Changed: times, IgnoreOwn: a.fields.ignoreOwn(), Event: &sentinels.Event{
		ID: id, Name: "file", Source: "/sentinels/" + string(a.env.Sentinel), Time: at, Data: body,
	}}
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		if _, err = fire(ctx, f); err == nil {
			a.last = &next
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		a.env.Logger.Warn("file change not admitted; retrying", "sentinel", a.env.Sentinel, "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(backoff):
		}
	}
}

var _ triggers.Armed = (*armed)(nil)
