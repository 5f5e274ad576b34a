package runtime

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A DefinitionChange tells of a new revision of a definition, a tombstone
// included. It is notified when the revision is durable.
type DefinitionChange struct {
	ID       sentinels.ID `json:"id"`
	Name     string       `json:"name,omitempty"`
	Revision int          `json:"revision"`
	Hash     string       `json:"hash,omitempty"`
	Deleted  bool         `json:"deleted,omitempty"`
	Origin   string       `json:"origin,omitempty"`
	By       string       `json:"by,omitempty"`
	Note     string       `json:"note,omitempty"`
	Time     time.Time    `json:"time"`
}

// definitionChanged tells everyone of a revision that became durable. The calls
// come one after the other, in the order of the commits, on the goroutine that
// delivers the store's receipts: a callback must not block there.
func (rt *Runtime) definitionChanged(s Stored) {
	rt.mu.Lock()
	followers := rt.followers
	rt.mu.Unlock()
	for _, f := range followers {
		f(s)
	}
	if rt.opt.Observer.Definition != nil {
		rt.opt.Observer.Definition(DefinitionChange{
			ID: s.ID, Name: s.Name, Revision: s.Revision, Hash: s.Hash, Deleted: s.Deleted,
			Origin: s.Origin, By: s.By, Note: s.Note, Time: s.SavedAt,
		})
	}
}

// followDefinitions has fn called with every new revision from now on, under
// the terms of definitionChanged. Parts of the engine that follow definitions
// use it; there is no way to leave, because they live as long as the runtime.
func (rt *Runtime) followDefinitions(fn func(Stored)) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.followers = append(rt.followers[:len(rt.followers):len(rt.followers)], fn)
}
