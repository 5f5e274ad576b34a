package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// maxListed bounds the changes that an event lists; the rest is counted.
const maxListed = 1000

// armed is one file trigger. Only the goroutine of Run uses it.
type armed struct {
	kind   *Kind
	fields fields
	env    triggers.Env
	past   *state // what the newest fire left
}

// data is the data of the event, clause F of the trigger's documentation.
type data struct {
	Paths   []string `json:"paths"`
	Changes []change `json:"changes"`
	// More counts changes that are not listed.
	More int `json:"more,omitempty"`
	// Offline says that nobody watched when it happened: the host was down. The
	// changes are then the files that look changed since; deleted ones are not
	// among them.
	Offline bool `json:"offline,omitempty"`
}

type change struct {
	Path string `json:"path"`
	Op   Op     `json:"op"`
}

// Run watches and fires until ctx ends. When the runtime calls it again after an
// error, what changed in between is found by the mark of the newest fire, as
// after a restart.
func (a *armed) Run(ctx context.Context, fire triggers.Func) error {
	w, release := a.kind.acquire(a.env.Workspace, a.env.Logger)
	defer release()
	sub, err := w.Subscribe(ctx, Query{Patterns: a.fields.Paths, Ignore: a.fields.Ignore, Settle: a.fields.settle()})
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer sub.Close()
	files, mark := sub.Files()
	if missed := a.missed(files, mark); missed != nil {
		if err := a.fire(ctx, fire, *missed, mark); err != nil {
			return unlessEnded(ctx, err)
		}
	}
	for {
		batch, err := sub.Next(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		var d data
		for _, c := range batch.Changes {
			if slices.Contains(a.fields.On, c.Op) {
				d.add(c.Path, c.Op)
			}
		}
		if len(d.Changes) == 0 {
			continue // operations that nobody asked for; the mark is not kept then
		}
		if err := a.fire(ctx, fire, d, batch.Mark); err != nil {
			return unlessEnded(ctx, err)
		}
	}
}

// unlessEnded drops an error that only says that ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (d *data) add(path string, op Op) {
	if len(d.Changes) == maxListed {
		d.More++
		return
	}
	d.Paths = append(d.Paths, path)
	d.Changes = append(d.Changes, change{path, op})
}

// Pauses between tries of a fire that was not decided.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// fire hands on one occasion until it is decided. Changes that come meanwhile
// wait in the subscription, merged.
func (a *armed) fire(ctx context.Context, fire triggers.Func, d data, mark Mark) error {
	at := a.env.Now()
	next := state{Mark: mark, At: at}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	// The key is made of what is told, and so the same if a crash makes it told
	// again before it was decided.
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", a.env.Sentinel, a.env.Name, body, at.UnixNano()))
	id := hex.EncodeToString(sum[:16])
	f := triggers.Fire{At: at, State: raw, Event: &sentinels.Event{
		ID: id, Name: "file", Source: "/sentinels/" + string(a.env.Sentinel), Time: at, Data: body,
	}}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if _, err = fire(ctx, f); err == nil {
			a.past = &next
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		a.env.Logger.Warn("a change of files could not be admitted; trying again", "sentinel", a.env.Sentinel, "reason", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

var _ triggers.Armed = (*armed)(nil)
