package plan

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// prepare returns the command of a step and its inputs with the outputs that they refer
// to; blocked is the error of a step that cannot be executed.
func prepare(c *sdk.Context) sdk.Value {
	step, results := c.Field("step"), c.Field("results")
	blocked, code := "", sdk.CodeCancelled
	needs, _ := step.Get("dependsOn").AsStrings()
	for _, id := range needs {
		if r := resultOf(results, id); !r.Get("success").BoolOr(false) {
			blocked = "not executed, because step " + id + " failed"
		}
	}
	inputs := step.Get("inputs")
	if blocked == "" {
		written, command := inputs, step.Get("command").StringOr("")
		inputs = rewrite(inputs, func(text string) sdk.Value {
			v, missing := resolve(text, results)
			if missing != "" {
				blocked = missing
			}
			return v
		})
		for _, f := range members(written) {
			if bad := codeProblem(command, f.Name, f.Value) + optionProblem(command, f.Name, f.Value, inputs.Get(f.Name)); bad != "" {
				blocked = bad
			}
		}
		if blocked != "" {
			code = sdk.CodeBadFields
		}
	}
	out := sdk.Object(sdk.F("command", step.Get("command")), sdk.F("risk", step.Get("risk")), sdk.F("inputs", inputs))
	if blocked != "" {
		out = out.With("blocked", sdk.Object(sdk.F("success", sdk.Bool(false)), sdk.F("blocked", sdk.Bool(true)),
			sdk.F("error", sdk.Object(sdk.F("code", sdk.String(string(code))), sdk.F("message", sdk.String(blocked))))))
	}
	return out
}

func resultOf(results sdk.Value, id string) sdk.Value {
	for _, r := range items(results) {
		if idOf(r.Get("stepId")) == id {
			return r
		}
	}
	return sdk.Value{}
}

// resolve replaces the references of a text. A text that is one reference becomes the value
// with its type.
func resolve(text string, results sdk.Value) (v sdk.Value, missing string) {
	list := references(text)
	out, at := "", 0
	for _, r := range list {
		output := resultOf(results, r.id).Get("output")
		if n := output.Get(tooLarge); n.Exists() {
			return sdk.String(text), "the output of step " + r.id + " has " + n.String() + " bytes, too many to be the input of another step"
		}
		if len(r.path) > 0 && r.path[0] == "content" && output.Get("truncated").BoolOr(false) {
			return sdk.String(text), "the content that step " + r.id + " read is a part of the file, and cannot be the input of another step"
		}
		value := lookup(output, r.path)
		if !value.Exists() {
			return sdk.String(text), "the output of step " + r.id + " has no value for " + text[r.from:r.to]
		}
		if r.from == 0 && r.to == len(text) {
			return value, ""
		}
		part, ok := value.AsString()
		if !ok {
			part = value.String()
		}
		out, at = out+text[at:r.from]+part, r.to
	}
	return sdk.String(out + text[at:]), ""
}

const (
	maxShown  = 4 << 10  // bytes of one output in the text for a critic
	maxOutput = 32 << 10 // bytes of one output in the results
	maxAll    = 96 << 10 // bytes of all of them
	maxError  = 1 << 10  // bytes of the message of a command that failed
	maxLog    = 100      // entries of the log
	stuckAt   = 3        // failures in a row
	repeatsAt = 2        // failures of the same action
)

// record returns the result of a step and the results so far with it, and whether the
// actions of all attempts repeat themselves.
func record(c *sdk.Context) sdk.Value {
	step, outcome := c.Field("step"), c.Field("outcome")
	inputs := brief(step.Get("inputs"))
	success := outcome.Get("success").BoolOr(true)
	blocked := outcome.Get("blocked").BoolOr(false)
	result := sdk.Object(sdk.F("stepId", step.Get("id")), sdk.F("skillId", step.Get("skillId")), sdk.F("inputs", inputs), sdk.F("success", sdk.Bool(success)))
	if success {
		result = result.With("output", bounded(outcome, c.Field("results")))
	} else {
		result = result.With("error", errorOf(step.Get("command").StringOr(""), outcome))
		if blocked {
			result = result.With("skipped", sdk.Bool(true))
		}
	}
	results := appended(c.Field("results"), result)
	log := c.Field("log")
	warning, stuck := "", false
	if !blocked {
		log = appended(log, sdk.Object(sdk.F("skillId", step.Get("skillId")), sdk.F("inputs", inputs), sdk.F("success", sdk.Bool(success)), sdk.F("error", result.Get("error"))))
		warning, stuck = repeats(log)
	}
	if !log.Exists() {
		log = sdk.List()
	}
	return sdk.Object(sdk.F("result", result), sdk.F("results", results), sdk.F("log", log),
		sdk.F("warning", sdk.String(warning)), sdk.F("stuck", sdk.Bool(stuck)), sdk.F("text", sdk.String(shown(results))))
}

// tooLarge is the field of an output in place of one that exceeds a limit. The results are
// a variable that each step writes again, so they must fit a request to the host.
const tooLarge = "tooLarge"

// bounded returns an output, or its size and its beginning.
func bounded(output, results sdk.Value) sdk.Value {
	text := output.String()
	if len(text) <= maxOutput && len(text)+len(results.String()) <= maxAll {
		return output
	}
	return sdk.Object(sdk.F(tooLarge, sdk.Int(int64(len(text)))), sdk.F("preview", sdk.String(sdk.Cut(text, maxShown))))
}

// brief returns inputs as they are in results and the log, with their beginning if they
// are long.
func brief(inputs sdk.Value) sdk.Value {
	const most = 1 << 10
	text := inputs.Canonical()
	if len(text) <= most {
		return inputs
	}
	return sdk.Object(sdk.F("hash", sdk.String(hash(text))), sdk.F("preview", sdk.String(sdk.Cut(text, most))))
}

// appended returns a list with one more item, and at most maxLog of them.
func appended(list, item sdk.Value) sdk.Value {
	all := append(items(list), item)
	return sdk.List(all[max(0, len(all)-maxLog):]...)
}

// repeats judges the last entry of the log: whether the same action failed before, and how
// many failures it ends with.
func repeats(log sdk.Value) (warning string, stuck bool) {
	last := log.At(log.Len() - 1)
	if last.Get("success").BoolOr(false) {
		return "", false
	}
	same, row := 0, 0
	action := last.Get("skillId").StringOr("") + " " + last.Get("inputs").Canonical()
	for _, e := range items(log) {
		row++
		if e.Get("success").BoolOr(false) {
			row = 0
		} else if e.Get("skillId").StringOr("")+" "+e.Get("inputs").Canonical() == action {
			same++
		}
	}
	if same >= repeatsAt {
		warning = last.Get("skillId").StringOr("") + " failed " + strconv.Itoa(same) + " times with the same inputs " + sdk.Cut(last.Get("inputs").Canonical(), 200) + ": do something else"
	}
	return warning, row >= stuckAt
}

// shown returns the results as a text for a critic.
func shown(results sdk.Value) string {
	text := ""
	for _, r := range items(results) {
		text += "Step " + idOf(r.Get("stepId")) + " (" + r.Get("skillId").StringOr("") + "): "
		if r.Get("success").BoolOr(false) {
			body := r.Get("output").String()
			if r.Get("output").Get(tooLarge).Exists() {
				body = r.Get("output").Get("preview").StringOr("")
				text += "[" + r.Get("output").Get(tooLarge).String() + " bytes, beginning] "
			}
			if text += sdk.Cut(body, maxShown); len(body) > maxShown {
				text += " [cut: " + strconv.Itoa(len(body)-maxShown) + " more bytes]"
			}
			text += "\n"
			continue
		}
		text += r.Get("error").Get("code").StringOr("") + ": " + r.Get("error").Get("message").StringOr("") + "\n"
	}
	return text
}
