package host

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// isReviewer reports whether a definition with triggers claims tickets as a reviewer, itself or in a sentinel that it
// starts. What agents and models have changed in one of a person does not count: their work is what it reviews.
func (h *Host) isReviewer(id sentinels.ID) bool {
	stored, err := h.rt.Definition(id)
	if err != nil {
		return false
	}
	stored, _ = h.revisionThatCounts(stored)
	return h.gateOf(stored).armed && partsOf(stored.ID, h.gateOfStored, func(g gateFacts) bool { return g.reviews }) != nil
}

// isGate reports whether only persons pause, change or delete a sentinel: one that a person made reviews the work of
// agents or tells persons about it, and it is that one or a sentinel that it starts, at any depth. The verdict of a
// reviewer may be made there. One that is not stored is a gate, too, so that no agent makes it.
func (h *Host) isGate(id sentinels.ID) bool {
	all, err := h.rt.Definitions()
	if err != nil {
		return false // the call fails for the same reason
	}
	facts := make(map[sentinels.ID]gateFacts, len(all))
	var gates []sentinels.ID
	for _, s := range all {
		stored, ofPerson := h.revisionThatCounts(s)
		facts[s.ID] = h.gateOf(stored)
		if ofPerson && facts[s.ID].armed {
			gates = append(gates, s.ID)
		}
	}
	h.gates.keep(facts)
	for _, gate := range gates {
		if partsOf(gate, func(id sentinels.ID) gateFacts { return facts[id] }, func(g gateFacts) bool { return g.reviews || g.sends })[id] {
			return true
		}
	}
	return false
}

// revisionThatCounts returns, of a sentinel with this newest revision, the newest one that a person made or accepted, or
// the newest one if an agent or model made the sentinel.
func (h *Host) revisionThatCounts(newest runtime.Stored) (stored runtime.Stored, ofPerson bool) {
	if newest.OfPerson() {
		return newest, true
	}
	before, err := h.rt.RevisionOfPerson(newest.ID, 0)
	if err != nil || before.Revision != 0 {
		return before, err == nil
	}
	return newest, false
}

// A gateFacts is what the text of a definition says about it as a gate.
type gateFacts struct {
	hash           string // of the text
	armed          bool   // it has triggers
	reviews, sends bool
	starts         []sentinels.ID
}

// A gateIndex keeps the facts of the definitions that count, so that a call of an agent does not read the texts of all: of
// 1,000 with three steps that took half a second beside other work. A revision with another text has another hash.
type gateIndex struct {
	mu sync.Mutex
	of map[sentinels.ID]gateFacts
}

// keep replaces what is kept, so that it has no sentinels that were deleted.
func (x *gateIndex) keep(facts map[sentinels.ID]gateFacts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of = facts
}

func (x *gateIndex) get(id sentinels.ID) gateFacts {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.of[id]
}

// gateOf returns the facts of a definition. One that cannot be read starts nothing and has no triggers; a step type that it
// lacks may come back, so its facts are read again.
func (h *Host) gateOf(stored runtime.Stored) gateFacts {
	if stored.Revision == 0 {
		return gateFacts{}
	}
	if g := h.gates.get(stored.ID); g.hash != "" && g.hash == stored.Hash {
		return g
	}
	g := gateFacts{}
	_ = sentinels.EachObject(stored.Definition, func(object map[string]any, child sentinels.ID) {
		g.reviews, g.sends = g.reviews || claimsReviews(object), g.sends || sendsMessages(object)
		if child != "" && !slices.Contains(g.starts, child) {
			g.starts = append(g.starts, child)
		}
	})
	if def, err := h.rt.Decoded(stored); err == nil {
		g.hash, g.armed = stored.Hash, len(def.Triggers) > 0
	}
	return g
}

// gateOfStored returns the facts of a stored sentinel, none if there is none of that id.
func (h *Host) gateOfStored(id sentinels.ID) gateFacts {
	newest, err := h.rt.Definition(id)
	if err != nil {
		return gateFacts{}
	}
	counts, _ := h.revisionThatCounts(newest)
	return h.gateOf(counts)
}

// partsOf returns a sentinel and those that it starts at any depth, nil if does is true of none of them. Sentinels may
// start each other in a cycle.
func partsOf(id sentinels.ID, of func(sentinels.ID) gateFacts, does func(gateFacts) bool) map[sentinels.ID]bool {
	parts, found := map[sentinels.ID]bool{id: true}, false
	for list := []sentinels.ID{id}; len(list) > 0; list = list[1:] {
		g := of(list[0])
		found = found || does(g)
		for _, child := range g.starts {
			if !parts[child] {
				parts[child] = true
				list = append(list, child)
			}
		}
	}
	if !found {
		return nil
	}
	return parts
}

// has reports whether does is true of an object in the text of a definition, such as a step. A text that cannot be read
// has none.
func has(definition json.RawMessage, does func(object map[string]any) bool) (found bool) {
	_ = sentinels.EachObject(definition, func(object map[string]any, _ sentinels.ID) { found = found || does(object) })
	return found
}

// sendsMessages reports whether a step sends a message to persons.
func sendsMessages(object map[string]any) bool { return object["command"] == "notify/send" }

// claimsReviews reports whether a step claims tickets as a reviewer.
func claimsReviews(object map[string]any) bool {
	params, _ := object["params"].(map[string]any)
	return object["command"] == "ticket/claim" && params["role"] == string(ticket.Reviewer)
}
