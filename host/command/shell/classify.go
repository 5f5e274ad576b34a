package shell

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// Classifiers are the output classifiers that rules may name.
//
// # Concurrency
//
// Safe for concurrent use. Lines returns when it has an answer or ctx ends, and no lock is
// held meanwhile.
type Classifiers interface {
	// Known returns why there is no classifier with a name, nil if there is one.
	Known(name string) error
	// Lines classifies at most [role.MaxLines] lines, each by itself. The answer has an entry
	// for each line, nil where the classifier does not know it or fails.
	Lines(ctx context.Context, name string, lines []role.Line) []*role.LineClass
}

// knownClassifier returns why there is no classifier with a name.
func (m *Manager) knownClassifier(name string) error {
	if m.opt.Classifiers == nil {
		return abi.New(abi.NotFound, fmt.Sprintf("no plugin provides the output classifier %q", name))
	}
	return m.opt.Classifiers.Known(name)
}

// classifierFault is the error of a rule whose classifier cannot be used.
func classifierFault(field string, err error) error {
	e := abi.Error{Code: abi.NotFound, Message: err.Error()}
	if known := abi.As(err); known != nil {
		e = *known
	}
	e.Field, e.Permanent, e.Message = field, true, fmt.Sprintf("field %q: %s", field, e.Message)
	return &e
}

// verdicts judges lines. Without rules every line is info; a line that no rule matches is
// verbose. Only a rule with the action suppress, or a classifier that says so, leaves a line
// out. Messages of the host are info and match nothing. The error is that of ctx.
func (m *Manager) verdicts(ctx context.Context, set ruleset, lines []role.Line) ([]verdict, error) {
	out := make([]verdict, len(lines))
	var open []int // the lines that no rule has decided about
	for i, l := range lines {
		switch {
		case l.Stream == "host":
			out[i] = verdict{classInfo, false, true}
		case len(set) == 0:
			out[i] = verdict{classInfo, true, true}
		default:
			out[i] = verdict{classVerbose, false, true}
			open = append(open, i)
		}
	}
	for _, r := range set {
		if r.classifier != "" {
			open = m.ask(ctx, r.classifier, lines, open, out)
			continue
		}
		left := open[:0]
		for _, i := range open {
			matches, err := r.pattern.MatchString(ctx, lines[i].Text)
			if err != nil {
				return nil, err
			}
			if matches {
				out[i] = verdict{r.class, true, r.emit}
			} else {
				left = append(left, i)
			}
		}
		open = left
	}
	return out, nil
}

// ask lets a classifier judge the open lines and returns those that it does not know.
func (m *Manager) ask(ctx context.Context, classifier string, lines []role.Line, open []int, out []verdict) (left []int) {
	if m.opt.Classifiers == nil {
		return open
	}
	for len(open) > 0 {
		some := open[:min(len(open), role.MaxLines)]
		open = open[len(some):]
		batch := make([]role.Line, len(some))
		for n, i := range some {
			batch[n] = role.Line{Text: textcut.Cut(lines[i].Text, role.MaxLine), Stream: lines[i].Stream}
		}
		for n, class := range m.opt.Classifiers.Lines(ctx, classifier, batch) {
			if class == nil {
				left = append(left, some[n])
				continue
			}
			out[some[n]] = verdict{class.Classification, true, class.Action != "suppress"}
		}
	}
	return left
}
