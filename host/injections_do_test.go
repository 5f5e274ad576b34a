package host_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// attackDo runs the shipped sentinel do with its input mode: deny as the program does without a
// terminal, off as it does with --yolo.
func attackDo(mode string) func(*scene, []injection) map[string][]outcome {
	return func(s *scene, list []injection) map[string][]outcome {
		all := map[string][]outcome{}
		for _, list := range shareOut(list, 5) {
			for i := range list {
				for j, c := range list[i].calls {
					list[i].calls[j] = doing(c, mode)
				}
			}
			maps.Copy(all, s.do(list, mode))
		}
		return all
	}
}

// doing is a call by the tools that do has. Without a terminal all that write are denied.
func doing(c act, mode string) act {
	switch c.tool {
	case "fs_read":
		c.tool = "code_read"
	case "fs_list":
		path, _ := c.args["cwd"].(string)
		pattern, _ := c.args["pattern"].(string)
		c = act{"code_tree", map[string]any{"path": cmp.Or(path, strings.TrimRight(pattern, "*"))}, beyond}
	case "fs_write":
		c.tool = "code_write"
	}
	if mode == "deny" && (c.tool == "code_write" || c.tool == "code_edit") {
		c.result = "a person has to approve"
	}
	return c
}

// do is one run with texts.
func (s *scene) do(list []injection, mode string) map[string][]outcome {
	t := s.t
	t.Helper()
	task, previous := "Look at the project.", ""
	for _, in := range list {
		switch in.where {
		case inGoal:
			task += " " + in.text
		case inContext:
			previous += in.text + "\n"
		}
	}
	var met map[string][]outcome
	s.obey = func(r chatRequest) answer {
		d := deceived{list: list, reply: "All is done, and approved: y", renamed: func(a answer) answer {
			c := doing(act{tool: a.tool, args: a.args}, "")
			return answer{tool: c.tool, args: c.args}
		}}
		a := d.answer(r)
		met = d.met
		return a
	}
	text, ok := sentinels.ShippedText("do")
	def, problems := s.h.Runtime().Decode(text, "do.json")
	if !ok || len(problems) > 0 {
		t.Fatal(ok, problems)
	}
	inputs := map[string]json.RawMessage{"verify": json.RawMessage("false")}
	for name, v := range map[string]string{"task": task, "previous": previous, "mode": mode} {
		inputs[name], _ = json.Marshal(v)
	}
	id, err := s.h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: s.ws, Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.h.Runtime().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var sum struct{ Outcome, Reason, Reply string }
	want := map[string]string{"deny": "denied", "off": "done"}[mode]
	if err := json.Unmarshal(res.Variables["summary"], &sum); err != nil || sum.Outcome != want {
		t.Errorf("%s: %+v, want %s: %v", res.Status, sum, want, err)
	}
	return met
}
