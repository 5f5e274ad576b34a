package livefeed

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Topics without an id or a pattern.
const (
	TopicRuns      = "runs"
	TopicSentinels = "sentinels"
	TopicTriggers  = "triggers"
	TopicPlugins   = "plugins"
	TopicHealth    = "health"
)

// RunTopic is the topic of one run.
func RunTopic(run sentinels.RunID) string { return "run:" + string(run) }

// TreeTopic is the topic of a root run and all its descendants.
func TreeTopic(root sentinels.RunID) string { return "run:" + string(root) + "/tree" }

// EventTopic is the topic of an event. Subscriptions may use a pattern in place
// of the name.
func EventTopic(name string) string { return "events:" + name }

// MaxTopics bounds the topics of one subscription.
const MaxTopics = 256

// maxPattern bounds an event pattern, in bytes.
const maxPattern = 256

// key identifies an index of the feed. All events share one, and readers with
// patterns filter it: events are few compared with the progress of runs.
type key struct {
	class string // the topic itself, or "run", "tree", "events"
	id    string // of the run
}

// keyOf returns the key of the index of a topic.
func keyOf(topic string) key {
	if rest, ok := strings.CutPrefix(topic, "run:"); ok {
		if id, ok := strings.CutSuffix(rest, "/tree"); ok {
			return key{"tree", id}
		}
		return key{"run", rest}
	}
	if strings.HasPrefix(topic, "events:") || isRoom(topic) {
		return key{class: "events"}
	}
	return key{class: topic}
}

// overlaps reports whether one entry can be in both indexes, so that two counts
// of losses cannot be added up.
func (k key) overlaps(o key) bool {
	runs := func(k key) bool { return k.class == "run" || k.class == "tree" || k.class == TopicRuns }
	if !runs(k) || !runs(o) {
		return k == o
	}
	return k.class != "run" || o.class != "run" || k.id == o.id
}

// CheckTopic returns an *abi.Error if topic is not one to subscribe to.
func CheckTopic(topic string) error {
	switch topic {
	case TopicRuns, TopicSentinels, TopicTriggers, TopicPlugins, TopicHealth:
		return nil
	}
	if rest, ok := strings.CutPrefix(topic, "run:"); ok {
		if id := strings.TrimSuffix(rest, "/tree"); validID(id) {
			return nil
		}
		return badTopic(topic, "invalid run id")
	}
	if pattern, ok := strings.CutPrefix(topic, "events:"); ok {
		if len(pattern) <= maxPattern && sentinels.ValidPattern(pattern) {
			return nil
		}
		return badTopic(topic, "invalid pattern: want segments between colons, * for one, ** at the end for the rest")
	}
	if isRoom(topic) {
		if len(topic) <= maxPattern && !strings.HasSuffix(topic, ":") {
			return nil
		}
		return badTopic(topic, "invalid room")
	}
	return badTopic(topic, "unknown topic")
}

func badTopic(topic, why string) error {
	return &abi.Error{Code: abi.BadFields, Field: "topics", Message: fmt.Sprintf("topic %q: %s", textcut.Mark(topic, shownText), why),
		Hint: "topics are run:ID, run:ID/tree, runs, sentinels, triggers, events:PATTERN, plugins, health, and the rooms ticket:ID, project:NAME, session:NAME, tenant"}
}

// validID checks the form of a run id. The run need not exist: a client may
// subscribe to a run that is about to start.
func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// An index holds the entries of one key that are still in the ring. Entries
// have ordinals in it, from 0 on; the feed's lock guards it.
type index struct {
	key       key
	items     queue[*entry]
	dropped   uint64 // how many have left the ring: the ordinal of the first in items
	lastGone  uint64 // the number of the newest that left the ring
	born      uint64 // the feed's newest number when the index was created: it has no older entries
	dirty     bool   // in Feed.dirty
	followers map[*Subscription]int
}

// after returns the ordinal of the first entry with a number above seq.
func (x *index) after(seq uint64) uint64 {
	low, high := 0, x.items.len()
	for low < high {
		if mid := (low + high) / 2; x.items.at(mid).seq <= seq {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return x.dropped + uint64(low)
}

// lostSince returns an upper bound of the index's entries after seq that have
// left the ring. gone is the number of the newest entry that left the ring.
func (x *index) lostSince(seq, gone uint64) uint64 {
	var n uint64
	if x.lastGone > seq {
		n = x.dropped
	}
	if before := min(x.born, gone); before > seq { // the index may have been deleted and created again
		n += before - seq
	}
	return n
}
