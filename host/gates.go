package host

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/command/sentinel"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// isReviewer reports whether a definition with triggers claims tickets as a reviewer, itself or in a sentinel that it
// starts. What agents and models have changed in one of a person does not count: their work is what it reviews.
func (h *Host) isReviewer(id sentinels.ID) bool {
	stored, _ := h.revisionThatCounts(id)
	return h.isArmed(stored) && h.partsOf(id, claimsReviews) != nil
}

// isGate reports whether only persons pause, change or delete a sentinel: one that a person made reviews the work of
// agents or tells persons about it, and it is that one or a sentinel that it starts, at any depth. The verdict of a
// reviewer may be made there. One that is not stored is a gate, too, so that no agent makes it.
func (h *Host) isGate(id sentinels.ID) bool {
	all, err := h.rt.Definitions()
	if err != nil {
		return false // the call fails for the same reason
	}
	for _, s := range all {
		stored, ofPerson := h.revisionThatCounts(s.ID)
		if !ofPerson || !h.isArmed(stored) {
			continue
		}
		if h.partsOf(s.ID, func(object map[string]any) bool { return claimsReviews(object) || sendsMessages(object) })[id] {
			return true
		}
	}
	return false
}

// revisionThatCounts returns the newest revision of a sentinel that a person made or accepted, or the newest one if an
// agent or model made the sentinel. It is empty for one that was deleted.
func (h *Host) revisionThatCounts(id sentinels.ID) (stored runtime.Stored, ofPerson bool) {
	stored, err := h.rt.Definition(id)
	if err != nil {
		return runtime.Stored{}, false
	}
	if stored.OfPerson() {
		return stored, true
	}
	before, err := h.rt.RevisionOfPerson(id, 0)
	if err != nil || before.Revision != 0 {
		return before, err == nil
	}
	return stored, false
}

// isArmed reports whether a definition has triggers.
func (h *Host) isArmed(stored runtime.Stored) bool {
	if stored.Revision == 0 {
		return false
	}
	def, err := h.rt.Decoded(stored)
	return err == nil && len(def.Triggers) > 0
}

// partsOf returns a sentinel and those that it starts at any depth, nil if does is true of no object in their
// definitions. Sentinels may start each other in a cycle.
func (h *Host) partsOf(id sentinels.ID, does func(object map[string]any) bool) map[sentinels.ID]bool {
	parts, found := map[sentinels.ID]bool{id: true}, false
	for list := []sentinels.ID{id}; len(list) > 0; list = list[1:] {
		stored, _ := h.revisionThatCounts(list[0])
		if stored.Revision == 0 {
			continue
		}
		// One that cannot be read starts nothing.
		_ = sentinel.EachObject(stored.Definition, func(object map[string]any, child sentinels.ID) {
			found = found || does(object)
			if child != "" && !parts[child] {
				parts[child] = true
				list = append(list, child)
			}
		})
	}
	if !found {
		return nil
	}
	return parts
}

// has reports whether does is true of an object in the text of a definition, such as a step. A text that cannot be read
// has none.
func has(definition json.RawMessage, does func(object map[string]any) bool) (found bool) {
	_ = sentinel.EachObject(definition, func(object map[string]any, _ sentinels.ID) { found = found || does(object) })
	return found
}

// sendsMessages reports whether a step sends a message to persons.
func sendsMessages(object map[string]any) bool { return object["command"] == "notify/send" }

// claimsReviews reports whether a step claims tickets as a reviewer.
func claimsReviews(object map[string]any) bool {
	params, _ := object["params"].(map[string]any)
	return object["command"] == "ticket/claim" && params["role"] == string(ticket.Reviewer)
}
