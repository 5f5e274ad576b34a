package plan

import "github.com/sentinel-runtime/sentinel/sdk"

// search is the host command that describes commands.
const search = "search_tools"

// maxSkills is the maximum number of skills of a plan, which search returns at once.
const maxSkills = 200

// autofix is the parameter of skills that [fields] sets.
const autofix = "path_autofix"

// A skill is a command that a plan may use.
type skill struct {
	name    string
	summary string
	schema  sdk.Value
	returns sdk.Value
	risk    string
}

type skills []skill

// skillsOf returns the commands that the field skills allows and that exist.
func skillsOf(c *sdk.Context) (skills, error) {
	names, _, err := c.StringsField("skills")
	if err != nil {
		return nil, err
	}
	most := c.Field("maxRisk").StringOr("high")
	found, err := c.Command(search, sdk.Object(sdk.F("tools", sdk.Strings(names)), sdk.F("limit", sdk.Int(maxSkills))))
	if err != nil {
		return nil, err
	}
	var all skills
	for _, f := range items(found.Get("tools")) {
		s := skill{f.Get("name").StringOr(""), f.Get("summary").StringOr(""), f.Get("schema"), f.Get("returns"), f.Get("risk").StringOr("high")}
		if level(s.risk) <= level(most) {
			all = append(all, s)
		}
	}
	return all, nil
}

// level orders the risks.
func level(risk string) int {
	switch risk {
	case "low":
		return 0
	case "medium":
		return 1
	}
	return 2
}

// id returns the name that models know a skill by: fs_read for the command fs/read.
func (s skill) id() string {
	name := []byte(s.name)
	for i, c := range name {
		if c == '/' {
			name[i] = '_'
		}
	}
	return string(name)
}

// find returns the skill with an id, which may be written as the name of the command.
func (all skills) find(id string) *skill {
	for i := range all {
		if all[i].name == id || all[i].id() == id {
			return &all[i]
		}
	}
	return nil
}

// ids lists the ids of all skills.
func (all skills) ids() string {
	text := ""
	for i, s := range all {
		if i > 0 {
			text += ", "
		}
		text += s.id()
	}
	return text
}

// catalogue returns the skills as data, and as a text for the prompt of a planner.
func (all skills) catalogue() sdk.Value {
	text := "Skills, by skillId, with their inputs (* is required):\n"
	list := make([]sdk.Value, len(all))
	for i, s := range all {
		text += "- " + s.id() + ": " + s.summary + "\n"
		required, _ := s.schema.Get("required").AsStrings()
		for _, f := range members(s.schema.Get("properties")) {
			name, p := f.Name, f.Value
			if name == autofix {
				continue
			}
			mark := ""
			if contains(required, name) {
				mark = "*"
			}
			text += "    " + name + mark + ": " + p.Get("description").StringOr(p.Get("type").StringOr("any")) + "\n"
		}
		if fields, _ := s.returns.AsStrings(); len(fields) > 0 {
			text += "    outputs: " + join(fields) + "\n"
		}
		list[i] = sdk.Object(sdk.F("skillId", sdk.String(s.id())), sdk.F("command", sdk.String(s.name)), sdk.F("risk", sdk.String(s.risk)))
	}
	text += `Reply with JSON only:
{"steps": [{"id": 1, "description": "...", "skillId": "...", "inputs": {}, "expectedOutput": "..."}], "reasoning": "..."}
An input may refer to the output of an earlier step: "{{steps.1.outputs.FIELD}}", with .0 for the first item of a list.
"dependsOn": [1] makes a step wait for others without using their outputs. Steps that do not depend on a failed one are executed all the same.`
	if all.find(shell) != nil {
		text += "\nNo reference in a shell line" + advised
	}
	return sdk.Object(sdk.F("skills", sdk.List(list...)), sdk.F("text", sdk.String(text)))
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

func join(list []string) string {
	text := ""
	for i, s := range list {
		if i > 0 {
			text += ", "
		}
		text += s
	}
	return text
}
