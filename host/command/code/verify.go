package code

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// stageTail limits the output of one program in a result, in bytes.
const stageTail = 24 << 10

type verifyIn struct {
	FullTest bool   `json:"fullTest,omitempty" jsonschema:"run the tests too"`
	Path     string `json:"path,omitempty" jsonschema:"folder of the project, the workspace if not given"`
}

type verifyOut struct {
	Success bool         `json:"success" jsonschema:"no step failed"`
	Steps   []verifyStep `json:"steps"`
	Output  string       `json:"output" jsonschema:"output of the step that failed after what was skipped, or else a line for each step"`
}

type verifyStep struct {
	Name       string   `json:"name"`
	Argv       []string `json:"argv"`
	ExitCode   int      `json:"exitCode"`
	Output     string   `json:"output" jsonschema:"the end of its output"`
	DurationMs int64    `json:"durationMs"`
	Skipped    bool     `json:"skipped,omitempty" jsonschema:"did not run because an earlier step failed, or for the reason in note"`
	Note       string   `json:"note,omitempty" jsonschema:"what did not happen: the program is not installed, or there are no tests"`
}

// A verifier executes the stages of a project by [Options.Run].
type verifier struct {
	files
	run Runner
}

// verify ends at the first stage that fails, because later ones would report the same
// problem. A project that has only tests is tested without fullTest.
func (v verifier) verify(ctx context.Context, call *command.Call, in verifyIn) (verifyOut, error) {
	w, err := v.open(call)
	if err != nil {
		return verifyOut{}, err
	}
	defer w.Close()
	dir, _, err := w.folder(in.Path)
	if err != nil {
		return verifyOut{}, err
	}
	stages, err := w.wantedStages(ctx, dir, in.FullTest)
	if err != nil {
		return verifyOut{}, err
	}
	out := verifyOut{Success: true, Steps: []verifyStep{}}
	var lines, notes []string
	for len(stages) > 0 {
		s := stages[0]
		stages = stages[1:]
		step := verifyStep{Name: s.name, Argv: s.argv, Skipped: !out.Success}
		if out.Success {
			if err := v.execute(ctx, call, dir, s, &step); err != nil {
				return verifyOut{}, err
			}
			line := fmt.Sprintf("%s: exit code %d", s.name, step.ExitCode)
			switch {
			case step.Skipped:
				line = s.name + ": " + step.Note
				notes = append(notes, line)
				stages = slices.Concat(s.instead, stages)
			case step.Note != "":
				line += ", " + step.Note
			case step.ExitCode != 0:
				out.Success = false
				// What is missing may be why it failed.
				out.Output = strings.Join(append(notes, line, step.Output), "\n")
			}
			lines = append(lines, line)
		}
		out.Steps = append(out.Steps, step)
	}
	if out.Success {
		out.Output = strings.Join(lines, "\n")
	}
	return out, nil
}

// notFoundCode is the exit code of shells, and of programs that look for another one,
// for a program that is not installed.
const notFoundCode = 127

// execute executes a stage and fills its result in.
func (v verifier) execute(ctx context.Context, call *command.Call, dir string, s stage, step *verifyStep) error {
	begin := time.Now()
	code, text, err := v.run(ctx, s.callFor(call), dir, s.argv, s.stdin)
	missing := abi.CodeOf(err) == abi.NotFound
	if missing && s.optional == "" {
		return &abi.Error{
			Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("verify %q: %s is not installed, which this %s project needs: %v", dir, s.argv[0], s.kind, err),
			Hint: fmt.Sprintf("install %s and add its folder to the PATH of the host, or set path to a folder with another project", s.argv[0]),
		}
	}
	if s.optional != "" && (missing || err == nil && (code == notFoundCode || s.absent != nil && s.absent(code, text))) {
		step.Skipped, step.Note = true, s.optional
		return nil
	}
	if err != nil {
		return err
	}
	step.ExitCode, step.Output, step.DurationMs = code, tail(text, stageTail), time.Since(begin).Milliseconds()
	if s.untested != nil && s.untested(code, text) {
		step.Note = "no tests were found, so nothing was tested"
	}
	return nil
}

// wantedStages returns the stages that a call executes, at least one.
func (w *workspace) wantedStages(ctx context.Context, dir string, fullTest bool) ([]stage, error) {
	stages, err := project{w, dir}.stages(ctx)
	if err != nil {
		return nil, err
	}
	if !fullTest && slices.ContainsFunc(stages, func(s stage) bool { return !s.test }) {
		stages = slices.DeleteFunc(stages, func(s stage) bool { return s.test })
	}
	if len(stages) == 0 {
		return nil, &abi.Error{
			Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("verify %q: no project that can be built or tested", dir),
			Hint: "code/verify looks for go.mod, package.json with scripts, Cargo.toml, Python files beside pyproject.toml, setup.py or requirements.txt or with tests, or a Makefile; set path to use another folder",
		}
	}
	return stages, nil
}

// tail returns the end of a text, of at most size bytes in JSON, from the start of a
// line on.
func tail(text string, size int) string {
	if jsonSize(text) <= size {
		return text
	}
	cut := text[max(len(text)-size, 0):]
	for jsonSize(cut) > size {
		cut = cut[len(cut)/8+1:]
	}
	if i := strings.IndexByte(cut, '\n'); i >= 0 && i < len(cut)-1 {
		cut = cut[i+1:]
	}
	for len(cut) > 0 && !utf8.RuneStart(cut[0]) {
		cut = cut[1:]
	}
	return fmt.Sprintf("[%d bytes before]\n%s", len(text)-len(cut), cut)
}
