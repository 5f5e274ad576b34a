package trigger

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// A Pause is one of all triggers of a sentinel.
type Pause struct {
	Until time.Time // it ends by itself then, or later when triggers are armed; zero for never
	By    string    // who pauses, for [Info]
	// Over is called with the By of a pause that they have, and its error is the error of the call. Default: each
	// pause is replaced.
	Over func(by string) error
}

// Info is what one trigger of a sentinel waits for, and what became of all its
// firings.
type Info struct {
	Sentinel sentinels.ID `json:"sentinel"`
	Index    int          `json:"index"` // in the definition; -1 for a definition that cannot be read
	// Name stays the same until the trigger itself is edited; edits of other parts
	// of the definition keep it.
	Name   string `json:"name,omitempty"`
	Type   string `json:"type,omitempty"`
	Detail string `json:"detail,omitempty"` // text for people: the schedule, the pattern, the paths
	Armed  bool   `json:"armed"`            // it can fire
	Paused bool   `json:"paused,omitempty"`
	// PausedUntil is when the pause ends by itself, zero for never.
	PausedUntil time.Time `json:"pausedUntil,omitzero"`
	PausedBy    string    `json:"pausedBy,omitempty"` // see [Pause]
	// Ended is why it starts nothing any more, by its options maxRuns and until; empty while it does.
	Ended string `json:"ended,omitempty"`
	// Problem is the reason why it is not armed, or why its newest firing could not be used.
	Problem string `json:"problem,omitempty"`

	Next        time.Time        `json:"next,omitzero"`      // the planned time, in the zone of the schedule; zero without one, and while it is paused
	Upcoming    []time.Time      `json:"upcoming,omitempty"` // as many planned times as were asked for, Next is the first
	LastFire    time.Time        `json:"lastFire,omitzero"`
	LastOutcome triggers.Outcome `json:"lastOutcome,omitempty"`
	LastReason  string           `json:"lastReason,omitempty"`
	LastRun     sentinels.RunID  `json:"lastRun,omitempty"` // the newest that it started

	Counts
	Waiting int   `json:"waiting"` // firings in the queue and the debounced one
	Skips   Skips `json:"skips,omitzero"`
	// Requests is nil for a trigger that fires on no requests.
	Requests *Requests `json:"requests,omitempty"`
}

// Requests are what a trigger that fires on requests has received, since the process started.
type Requests struct {
	// URL is where requests go: without a server that listens, its path.
	URL string `json:"url,omitempty"`
	// Refused counts the requests that it did not accept, and Reasons by reason. The ones of senders
	// that may not send are in memory only, so that strangers write nothing to the disk.
	Refused uint64            `json:"refused,omitempty"`
	Reasons map[string]uint64 `json:"reasons,omitempty"`
	Last    time.Time         `json:"lastRefused,omitzero"`
}

// Skips are the firings that were skipped since the trigger last started one, or queued one while no run was active,
// because a run was active. Zero is none. They survive restarts.
type Skips struct {
	Count uint64          `json:"count"`
	Since time.Time       `json:"since"`         // when the first of them was due
	Run   sentinels.RunID `json:"run,omitempty"` // the oldest run that was active at the newest; "" if firings were queued
}

// Counts are exact and survive restarts: they are in the commits of what they
// count. Every firing ends in one of Started, Skipped, Filtered, Coalesced,
// Duplicates and Refused, or still waits, so the sum of these and the Waiting of
// [Info] is always Fired.
type Counts struct {
	Fired      uint64 `json:"fired"`
	Started    uint64 `json:"started"`
	Queued     uint64 `json:"queued"` // those that had to wait in the queue, whatever became of them
	Skipped    uint64 `json:"skipped"`
	Filtered   uint64 `json:"filtered"`
	Coalesced  uint64 `json:"coalesced"` // joined or replaced by a later firing while they waited
	Own        uint64 `json:"own"`       // those that reported changes of the sentinel's own runs, and so waited or were skipped
	Duplicates uint64 `json:"duplicates"`
	Refused    uint64 `json:"refused"`
	Missed     uint64 `json:"missed"` // occasions that never became a firing; not part of Fired
	// Overdue counts how often no run came in the time in which the trigger expected one; not
	// part of Fired. Planned times that pass while the host is down count once.
	Overdue uint64 `json:"overdue"`
}

// Fired is the outcome of one firing. A firing that waits, in the queue or for
// the end of its debounce, is reported twice: that it waits, and its final
// outcome. One that a later firing replaces is not reported again.
type Fired struct {
	Sentinel sentinels.ID     `json:"sentinel"`
	Trigger  string           `json:"trigger"` // its name, see [Info]
	Type     string           `json:"type"`
	At       time.Time        `json:"at"`
	Outcome  triggers.Outcome `json:"outcome"`
	Run      sentinels.RunID  `json:"run,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Event    *sentinels.Event `json:"event,omitempty"`
	// Held counts the firings that were skipped in a row with this one because the triggers of an agent
	// start too many runs, 0 for any other outcome. A log needs the first.
	Held int `json:"-"`
}
