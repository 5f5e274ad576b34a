package revision

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Stored is one revision of a definition in the store. The definition is the last
// field: the store finds it there without decoding it.
type Stored struct {
	ID         sentinels.ID    `json:"id"`
	Name       string          `json:"name,omitempty"`
	Revision   int             `json:"revision"` // counts from 1, also over a deletion
	Hash       string          `json:"hash"`
	SavedAt    time.Time       `json:"savedAt"`
	Origin     string          `json:"origin,omitempty"`  // the file it lives in
	By         string          `json:"by,omitempty"`      // who made the revision
	Note       string          `json:"note,omitempty"`    // why, in the words of the author
	Deleted    bool            `json:"deleted,omitempty"` // a tombstone: this revision has no definition
	Within     []string        `json:"within,omitzero"`   // commands that its runs may call, see [SaveOptions]; nil means no bound. Of a tombstone: that of its author
	Maker      string          `json:"maker,omitempty"`   // agent whose bound Within is, also where others have edited its definition
	Hops       int             `json:"hops,omitempty"`    // length of the chain of the run that made the revision; 0 is none
	Path       []string        `json:"path,omitempty"`    // the sentinels of that chain
	Definition json.RawMessage `json:"definition,omitempty"`
}

// Agent returns the agent that made the definition, or part of it: its runs execute for this agent.
// It is empty if nothing bounds them.
func (s *Stored) Agent() string {
	if s.Within == nil || s.Maker != "" {
		return s.Maker
	}
	return AgentOf(s.By)
}

// OfPerson reports whether the revision has a definition of a person, or one that a person has accepted:
// those of agents and models have a bound.
func (s *Stored) OfPerson() bool { return !s.Deleted && s.Within == nil }

// AgentOf returns the agent in the name of an author, empty for another author. What an agent has
// named itself stands behind a slash.
func AgentOf(by string) string {
	agent, _, _ := strings.Cut(by, "/")
	if !strings.HasPrefix(agent, "agent:") {
		return ""
	}
	return agent
}

// Any as an expected revision means any revision or none.
const Any = -1

// SaveOptions describe a new revision.
type SaveOptions struct {
	// Expect is the revision that the edit was made on, [Any] for any or none.
	// Another one is the error conflict. Default 0: the definition is new.
	Expect int
	// Origin is the file the definition lives in. Default: that of the revision
	// before.
	Origin string
	// Run is the run whose command makes the revision. Runs that are started by triggers
	// which the revision adds continue its chain of events, so that runs which make triggers
	// come to an end as well. Default empty: no run.
	Run sentinels.RunID
	// Changed is when the file that the revision comes from was changed. Without Run it
	// continues the longest chain of the runs that were active then, like the firing of a
	// file trigger; that of runs of the sentinel itself is preferred. Default zero: not known.
	Changed time.Time
	// By says who makes the revision. Default empty: not known.
	By string
	// Maker is the agent whose bound Within is, if By is not that agent. Default empty.
	Maker string
	// Note is the reason. Default empty.
	Note string
	// Over is for a deletion: it refuses, with its error, to end the pause of the triggers by the user by, as in
	// [trigger.Pause]. Default nil: no condition.
	Over func(by string) error
	// Within are the commands that the author may call, by name and pattern: no run of the
	// revision calls others. What bounds the revision before bounds this one too, so that an
	// edit does not lift the bound of what it leaves unchanged. Default nil: no bound by the
	// author.
	Within []string
	// Whole says that a person gives the whole definition, or accepts it: the bound of the
	// revision before does not count any more.
	Whole bool
}

// A Change reports a new revision of a definition, a tombstone included, when it is
// durable.
type Change struct {
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
