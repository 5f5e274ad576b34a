package ticket

import (
	"cmp"
	"context"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/ticket/learning"
)

type contextIn struct {
	ID       string `json:"id" jsonschema:"id of the ticket"`
	Token    uint64 `json:"token,omitempty" jsonschema:"of the claim: the rules in the answer are then recorded as offered to it"`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"of the prompt; 65536 if not given" minimum:"16384" maximum:"262144"`
	// Texts are quoted with the ticket, so that their authors cannot write instructions.
	Texts []learning.Text `json:"texts,omitempty" jsonschema:"further texts that the prompt quotes as data, such as a diff; at most 20, and half of the prompt"`
}

func (f family) context(ctx context.Context, call *command.Call, in contextIn) (learning.Context, error) {
	tx, err := begin(call)
	if err != nil {
		return learning.Context{}, err
	}
	if in.Token != 0 {
		if err := f.own(ctx, tx, call, in.ID, in.Token); err != nil {
			return learning.Context{}, err
		}
	}
	return f.l.Context(ctx, tx, f.s, learning.Request{Ticket: in.ID, Token: in.Token, Bytes: in.MaxBytes, Texts: in.Texts})
}

type rulesIn struct {
	State  []string `json:"state,omitempty" jsonschema:"only rules in these states: proposed, active or retired; all of them if not given. seen are failures that one ticket had"`
	Limit  int      `json:"limit,omitempty" jsonschema:"rules on the page, 1000 if not given" minimum:"1" maximum:"1000"`
	Offset int      `json:"offset,omitempty" jsonschema:"rules to leave out" minimum:"0"`
}

type rulesOut struct {
	Rules []learning.View `json:"rules"`
	Total int             `json:"total"`
}

func (f family) rules(ctx context.Context, call *command.Call, in rulesIn) (out rulesOut, err error) {
	tx, err := begin(call)
	if err != nil {
		return out, err
	}
	var states []learning.State
	for _, s := range in.State {
		states = append(states, learning.State(s))
	}
	all, err := f.l.List(ctx, tx, states)
	out.Total = len(all)
	out.Rules = all[min(in.Offset, len(all)):min(in.Offset+cmp.Or(in.Limit, 1000), len(all))]
	return out, err
}

type addRuleIn struct {
	Text     string `json:"text" jsonschema:"one line, at most 1000 bytes"`
	Kind     string `json:"kind,omitempty" enum:"rule,pattern" jsonschema:"rule (if not given): what to do or avoid; pattern: what succeeded before"`
	Priority int    `json:"priority,omitempty" jsonschema:"higher is offered first; 50 if not given" minimum:"1" maximum:"100"`
	Ticket   string `json:"ticket,omitempty" jsonschema:"id of the ticket that it was learned from"`
	Attempt  int    `json:"attempt,omitempty" jsonschema:"number of the attempt that it was learned from" minimum:"1"`
	learning.Scope
}

type ruleOut struct {
	Rule learning.View `json:"rule"`
}

func (f family) addRule(ctx context.Context, call *command.Call, in addRuleIn) (ruleOut, error) {
	tx, err := begin(call)
	if err != nil {
		return ruleOut{}, err
	}
	source := learning.Source{Kind: learning.Agent, By: call.Who(), Ticket: in.Ticket, Attempt: in.Attempt, Run: call.Run}
	if call.By == command.ByModel {
		source.Kind = learning.Model
	} else if person(call) {
		source.Kind = learning.Person
	}
	var evidence []string
	if in.Ticket != "" {
		if _, err := f.s.Get(ctx, tx, in.Ticket); err != nil {
			return ruleOut{}, err
		}
		evidence = []string{in.Ticket}
	}
	v, err := f.l.Add(ctx, tx, learning.Rule{Kind: learning.Kind(in.Kind), Text: in.Text, Priority: in.Priority, Scope: in.Scope, Source: source, Evidence: evidence})
	return ruleOut{v}, err
}

type decideRuleIn struct {
	Rule   string `json:"rule" jsonschema:"id of the rule"`
	Action string `json:"action" enum:"accept,retire,remove" jsonschema:"accept: it is offered; retire: it is not, and is not proposed again; remove: it is forgotten"`
}

func (f family) decideRule(ctx context.Context, call *command.Call, in decideRuleIn) (ruleOut, error) {
	tx, err := begin(call)
	if err != nil {
		return ruleOut{}, err
	}
	v, err := f.l.Decide(ctx, tx, in.Rule, in.Action, call.Who())
	return ruleOut{v}, err
}
