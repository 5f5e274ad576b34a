package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An Examination is what three small turns with a model have shown.
type Examination struct {
	Choice
	Protocol  string
	Text      bool // it answered
	Tools     bool // it called a tool that it was asked to call
	Schema    bool // it kept to a schema
	Usage     sentinels.Usage
	Estimated bool   // the server counted no tokens in a turn
	Priced    bool   // its price is known, see CostUSD of Usage
	Price     string // where it is from: an address and a day, "" if the configuration does not say
	Window    int64
	Notes     []string // what was sent or read differently than asked
	Err       error    // of the first turn that failed
}

// examineTokens limits each reply of an examination. Thinking counts.
const examineTokens = 2048

// References returns the models to examine: those of the configuration, and each provider
// that is ready.
func (m *Models) References() (refs []string) {
	for _, ref := range m.config.refs() {
		if !isAuto(ref.name) {
			refs = append(refs, ref.name)
		}
	}
	for _, row := range m.config.Models {
		if row.Provider != "" {
			refs = append(refs, row.Provider+"/"+row.Name)
		}
	}
	for _, p := range m.all {
		// A local server that the user has not named may not run.
		if p.ready && (p.Name != "ollama" || p.baseEnv != "") {
			refs = append(refs, p.Name)
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// Examine asks a model for a word, for a call of a tool and for a reply with a schema. It sends
// nothing but that. Turns that fail are part of the result.
func (m *Models) Examine(ctx context.Context, ref string) Examination {
	word := sentinels.Turn{Model: ref, MaxTokens: examineTokens, Messages: []sentinels.Message{{Role: "user", Content: "Reply with the word ready and nothing else."}}}
	c, err := m.choose(ctx, word)
	x := Examination{Choice: c.Choice, Err: m.clean(err)}
	if err != nil {
		return x
	}
	x.Protocol = m.protocol(c)
	word.Model = c.Provider + "/" + c.Model
	var report Report
	ask := func(change func(*sentinels.Turn), shown *bool, want func(sentinels.Reply) bool) {
		turn := word
		change(&turn)
		reply, err := m.turn(ctx, turn, nil, &report)
		x.Usage.Add(reply.Usage)
		x.Estimated, x.Notes = report.Estimated, report.Notes
		if err != nil && x.Err == nil {
			x.Err = m.clean(err)
		}
		*shown = err == nil && want(reply)
	}
	ask(func(*sentinels.Turn) {}, &x.Text, func(r sentinels.Reply) bool { return strings.TrimSpace(r.Text) != "" })
	if x.Err != nil {
		return x // the others would fail in the same way
	}
	ask(func(t *sentinels.Turn) {
		t.Messages = []sentinels.Message{{Role: "user", Content: "Call the tool note with the text ready."}}
		t.Tools = []sentinels.ToolSpec{{
			Name: "note", Description: "Notes a text.",
			Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		}}
	}, &x.Tools, func(r sentinels.Reply) bool { return len(r.ToolCalls) == 1 && r.ToolCalls[0].Name == "note" })
	ask(func(t *sentinels.Turn) {
		t.Messages = []sentinels.Message{{Role: "user", Content: "How many days has a week?"}}
		t.Schema = json.RawMessage(`{"type":"object","properties":{"days":{"type":"integer"}},"required":["days"],"additionalProperties":false}`)
	}, &x.Schema, func(r sentinels.Reply) bool { return r.JSON != nil && len(r.Problems) == 0 })
	row, priced := m.priced(c.provider, c.Model)
	if x.Priced = priced; row.Source != "" && !c.provider.Local {
		x.Price = row.Source + ", " + row.Date
	}
	x.Window = m.sized(c).Context
	if x.Window == 0 {
		x.Window = m.listed(ctx, c)
	}
	return x
}

// String describes what the turns have shown, without their error.
func (x Examination) String() string {
	parts := []string{}
	for _, ability := range []struct {
		name string
		has  bool
	}{{"text", x.Text}, {"tools", x.Tools}, {"structured output", x.Schema}} {
		if !ability.has {
			ability.name = "no " + ability.name
		}
		parts = append(parts, ability.name)
	}
	counted := fmt.Sprintf("%d and %d tokens", x.Usage.InputTokens, x.Usage.OutputTokens)
	if x.Estimated {
		counted += ", estimated"
	}
	price := "price unknown: a budget in dollars refuses it"
	if x.Priced {
		if price = fmt.Sprintf("$%.4f", x.Usage.CostUSD); x.Price != "" {
			price += " (" + x.Price + ")"
		}
	}
	window := "window unknown"
	if x.Window > 0 {
		window = fmt.Sprintf("window %d", x.Window)
	}
	text := fmt.Sprintf("%s; %s; %s; %s; protocol %s", strings.Join(parts, ", "), counted, price, window, x.Protocol)
	if len(x.Notes) > 0 {
		text += "; " + strings.Join(x.Notes, "; ")
	}
	return text
}
