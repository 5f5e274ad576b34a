package memory

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Collection has one document for each memory.
const Collection = "memory"

// Commands returns the family memory/*.
func Commands() []command.Command {
	return []command.Command{
		command.New("memory/store", "Remember a text for later runs of the sentinel.",
			command.Options{Effect: command.Changes, Idempotent: true, InStore: true}, store),
		command.New("memory/recall", "Find what was remembered: by key, tags or words, the best match first.",
			command.Options{Effect: command.Reads, Idempotent: true, InStore: true}, recall),
	}
}

// A memory is the data of a document.
type memory struct {
	Sentinel string   `json:"sentinel"`
	Key      string   `json:"key,omitempty"`
	Text     string   `json:"text"`
	Tags     []string `json:"tags,omitempty"`
	By       string   `json:"by,omitempty" jsonschema:"who stored it: user or a persona, agent:NAME, step of ID or model of ID"`
}

// byAgent reports whether an agent stored the memory, or a run that executed for one.
func (m memory) byAgent() bool { return strings.HasPrefix(m.By, string(command.ByAgent)+":") }

// ownerOf returns the sentinel whose memories are meant: that of the caller unless another
// one is named; "" for a user who names none. Inline definitions share the memories of the
// stored sentinel that they are part of. A model has those of its own sentinel only.
func ownerOf(call *command.Call, named string) (string, error) {
	own, _, _ := strings.Cut(string(call.Sentinel), "@")
	if named == "" || named == own {
		return own, nil
	}
	if call.By == command.ByModel {
		return "", &abi.Error{Code: abi.Denied, Permanent: true, Field: "sentinelId",
			Message: fmt.Sprintf("%s: a model has the memories of its own sentinel only, not those of %.80q", call.Command, named)}
	}
	return named, nil
}

// records refuses a call without the store: a fault of the host.
func records(call *command.Call) error {
	if call.Records == nil {
		return abi.New(abi.Internal, call.Command+": the call has no records")
	}
	return nil
}
