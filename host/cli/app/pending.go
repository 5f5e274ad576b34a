package app

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Pending is an action that a run needs from a person, with the command line for it.
type Pending struct {
	Run     sentinels.RunID `json:"run"`
	Call    string          `json:"call,omitempty"`
	Kind    string          `json:"kind"` // approval, doubt, limit
	Prompt  string          `json:"prompt"`
	Choices []string        `json:"choices,omitempty"`
	Type    string          `json:"type"` // the command line
}

// PendingActions lists the actions that runs need. Their command lines work in the same
// folder.
func (a *App) PendingActions(runs []runtime.RunInfo) []Pending {
	var list []Pending
	for _, r := range runs {
		for _, q := range r.Decisions {
			line := fmt.Sprintf("sentinel decide%s %s %s %s", a.SameStore(), r.ID, output.Quote(q.Call), strings.Join(q.Choices, "|"))
			if q.Kind == runtime.DecisionQuarantine {
				line += " --comment WHY"
			}
			list = append(list, Pending{r.ID, q.Call, string(q.Kind), q.Prompt, q.Choices, line})
		}
		if r.Status == sentinels.StatusPaused && r.Limit != "" {
			list = append(list, Pending{Run: r.ID, Kind: "limit", Prompt: "the run reached its limit " + r.Limit,
				Type: fmt.Sprintf("sentinel run%s --resume %s%s", a.SameStore(), r.ID, extensionFlag(r.Limit))})
		}
	}
	return list
}

// extensionFlag returns the flag that extends a limit.
func extensionFlag(limit string) string {
	switch limit {
	case "maxIterations":
		return " --max-iterations +N"
	case "timeoutMs":
		return " --timeout +DURATION"
	case "budget.costUsd":
		return " --budget-usd +X"
	case "budget.tokens":
		return " --budget-tokens +N"
	case "budget.calls":
		return " --budget-calls +N"
	}
	return ""
}
