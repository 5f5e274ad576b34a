package plan

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "skills": {"type": "array", "items": {"type": "string"}, "description": "Commands that a plan may use, as in tools. Alone: lists them."},
    "maxRisk": {"type": "string", "enum": ["low", "medium", "high"], "default": "high", "description": "Highest risk of a skill."},
    "plan": {"description": "Plan to check: JSON, or a text with it."},
    "failed": {"type": "array", "description": "Failed plans."},
    "autofix": {"type": "boolean", "description": "path_autofix of all steps."},
    "step": {"type": "object", "description": "Step to prepare."},
    "results": {"type": "array", "description": "Results so far."},
    "outcome": {"description": "Records this output of the step."},
    "log": {"type": "array", "description": "Actions of all attempts."}
  },
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "text": {"type": "string"},
    "skills": {"type": "array"},
    "valid": {"type": "boolean"},
    "ok": {"type": "boolean"},
    "problems": {"type": "array"},
    "plan": {"type": "object"},
    "hash": {"type": "string"},
    "equal": {"type": "boolean"},
    "equalTo": {"type": "integer"},
    "command": {"type": "string"},
    "inputs": {"type": "object"},
    "risk": {"type": "string"},
    "blocked": {"type": "object"},
    "result": {"type": "object"},
    "results": {"type": "array"},
    "log": {"type": "array"},
    "warning": {"type": "string"},
    "stuck": {"type": "boolean"}
  },
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "plan",
		Summary:  "Checks a plan of a model, prepares its steps and records what they did.",
		Fields:   fields,
		Output:   output,
		ReadOnly: true,
		Run:      run,
		Validate: validate,
	}
}

// validate requires either skills or a step.
func validate(fields sdk.Value) []sdk.Problem {
	step := fields.Get("step").Given()
	if step == fields.Get("skills").Given() {
		return []sdk.Problem{{Field: "skills", Message: "want either skills or step"}}
	}
	for _, name := range [...]string{"plan", "failed", "maxRisk", "autofix"} {
		if step && fields.Get(name).Given() {
			return []sdk.Problem{{Field: name, Message: "requires skills"}}
		}
	}
	for _, name := range [...]string{"results", "outcome", "log"} {
		if !step && fields.Get(name).Given() {
			return []sdk.Problem{{Field: name, Message: "requires step"}}
		}
	}
	return nil
}

func run(c *sdk.Context) (sdk.Value, error) {
	if err := sdk.BadFields(validate(c.Fields())); err != nil {
		return sdk.Value{}, err
	}
	if c.Field("step").Given() {
		if c.Field("outcome").Exists() {
			return record(c), nil
		}
		return prepare(c), nil
	}
	all, err := skillsOf(c)
	if err != nil {
		return sdk.Value{}, err
	}
	if c.Field("plan").Exists() {
		return check(c, all), nil
	}
	return all.catalogue(), nil
}
