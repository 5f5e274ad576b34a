package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxSaid limits what is shown of what a model says before it calls a tool, in bytes.
const maxSaid = 2 << 10

// taskLines are the lines of a task. ok is false for progress that is shown as in every run.
func (l *lines) taskLines(p runtime.Progress) (list []termtext.Text, ok bool) {
	switch {
	case p.Event == runtime.OnText && p.Run == l.root:
		if len(l.said) <= maxSaid {
			l.said += p.Message
		}
		return nil, true
	case p.Event == runtime.OnCallStart && p.Run == l.root && p.Type == "llm":
		return l.saidLines(p.Function), true
	case p.Event == runtime.OnCallEnd && p.ByModel:
		return l.toolLines(p), true
	case p.Event == runtime.OnCallEnd && p.Label == "code/preview" && p.Error != nil:
		// A call that needs an approval and would fail is not made, and is shown all the same.
		var call struct {
			Command string          `json:"command"`
			Params  json.RawMessage `json:"params"`
		}
		if strictjson.DecodeOpen(p.Params, &call, strictjson.Unlimited()) == nil && call.Command != "" {
			p.Label, p.Params = call.Command, call.Params
		}
		return l.toolLines(p), true
	case p.Event == runtime.OnCallEnd:
		return nil, !l.app.Flags.Verbose
	case p.Event != runtime.OnStepEnd || p.Run != l.root:
		return nil, false
	case p.Error != nil && p.Skipped == "":
		// A step of type set fails on purpose, with the reason that the summary has.
		return nil, p.Type == "set" && !l.app.Flags.Verbose
	}
	return l.checkLines(p), !l.app.Flags.Verbose
}

// saidLines is what the model said, once it calls a command. What it says last is its reply,
// which the summary shows.
func (l *lines) saidLines(function string) []termtext.Text {
	text := textcut.Mark(strings.TrimSpace(l.said), maxSaid)
	if l.said = ""; text == "" || function != abi.FuncCommand {
		return nil
	}
	var list []termtext.Text
	for line := range strings.SplitSeq(string(termtext.Block(text, "")), "\n") {
		list = append(list, l.paint.Dim("> ")+termtext.Text(line)) // so that none looks like a line of the program
	}
	return list
}

// toolLines is a call of the model: what it does, and what came of it.
func (l *lines) toolLines(p runtime.Progress) []termtext.Text {
	var out struct {
		Added, Removed, ExitCode int
		Created                  bool
		Changes                  []struct{ Line int }
	}
	_ = json.Unmarshal(p.Output, &out) // a failed call has none
	line := 0
	if len(out.Changes) > 0 {
		line = out.Changes[0].Line
	}
	text := "  " + l.toolName(p, line)
	if p.Error == nil {
		text += l.result(out.Created, out.Added, out.Removed, out.ExitCode)
	}
	return l.failure(text+"  "+l.paint.Dim(output.Duration(p.Duration)), p)
}

// toolName is the command of a call with what it is about, such as a path and the line, if
// it is not 0.
func (l *lines) toolName(p runtime.Progress, line int) termtext.Text {
	var in struct {
		Path    string   `json:"path"`
		Pattern string   `json:"pattern"`
		Query   string   `json:"query"`
		Command string   `json:"command"`
		Argv    []string `json:"argv"`
		Args    []string `json:"args"`
		Offset  int      `json:"offset"`
		Base    string   `json:"base"`
	}
	_ = strictjson.DecodeOpen(p.Params, &in, strictjson.Unlimited()) // a model may write other types; then nothing of them is shown
	name := p.Label[strings.LastIndexByte(p.Label, '/')+1:]
	what := in.Path
	switch {
	case p.Label == "code/shell/execute":
		name, what = "$", in.Command
		if words := append(in.Argv, in.Args...); len(words) > 0 {
			what = strings.TrimSpace(what + " " + strings.Join(words, " "))
		}
	case line > 0:
		what = fmt.Sprintf("%s:%d", what, line)
	case in.Offset > 1:
		what = fmt.Sprintf("%s:%d", what, in.Offset)
	case what == "":
		what = in.Pattern + in.Query + in.Base
	case in.Pattern != "":
		what = in.Pattern + " in " + what
	}
	text := l.paint.Strong(output.Escape(name))
	if what != "" {
		text += " " + output.Clip(what, 100)
	}
	return text
}

// result is what came of a call.
func (l *lines) result(created bool, added, removed, exitCode int) termtext.Text {
	switch {
	case exitCode != 0:
		return "  " + l.paint.Bad(termtext.Sprintf("exit code %d", exitCode))
	case added+removed > 0:
		text := "  " + l.counts(added, removed)
		if created {
			text += " new"
		}
		return text
	case created:
		return "  new"
	}
	return ""
}

// counts are numbers of lines.
func (l *lines) counts(added, removed int) termtext.Text {
	return l.paint.Good(termtext.Sprintf("+%d", added)) + " " + l.paint.Bad(termtext.Sprintf("-%d", removed))
}

// checkLines are the checks that a step of type set has noted in results since the last one.
func (l *lines) checkLines(p runtime.Progress) []termtext.Text {
	var out struct {
		Results []struct {
			Name, Text string
			Success    bool
			DurationMs float64
		}
	}
	if p.Type != "set" || json.Unmarshal(p.Output, &out) != nil || out.Results == nil {
		return nil
	}
	seen := min(l.checked, len(out.Results))
	l.checked = len(out.Results)
	var list []termtext.Text
	for _, c := range out.Results[seen:] {
		mark := l.paint.Good("ok")
		if !c.Success {
			why, _, _ := strings.Cut(c.Text, "\n") // the exit code, or why it was not executed
			mark = l.paint.Bad(output.Clip(why, 200))
		}
		line := "  " + l.paint.Strong("check") + " " + output.Clip(c.Name, 100) + "  " + mark
		if c.DurationMs > 0 { // one that was not executed has none
			line += "  " + l.paint.Dim(output.Duration(time.Duration(c.DurationMs*float64(time.Millisecond))))
		}
		list = append(list, line)
	}
	return list
}
