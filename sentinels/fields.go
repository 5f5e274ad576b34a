package sentinels

import (
	"encoding/json"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// format has all keys of the format, a row for each, grouped by the object that has
// them. Decode, Encode, Schema, Diff, Rewrite, hints for unknown keys and the tables in
// FORMAT.md come from the rows, and there is no other list of keys. They are not changed
// after the start of the process.
var format struct {
	definition table[fileDefinition]
	step       table[Step]
	loop       table[Loop]
	trigger    table[Trigger]
	safety     table[Safety]
	budget     table[Budget]
	input      table[Input]
	overlap    table[Definition]
	onError    table[OnError]
	retry      table[RetryPolicy]
}

// The choices of fields with a fixed list of words.
var (
	loopTypes    = words(LoopOnce, LoopCount, LoopUntil, LoopWhile, LoopContinuous, LoopEvent)
	timeouts     = words(TimeoutStop, TimeoutPause)
	interrupts   = words(InterruptRetry, InterruptFail, InterruptAsk)
	overlaps     = words(OverlapSkip, OverlapQueue, OverlapParallel, OverlapRestart)
	errorActions = words(ActionFail, ActionSkip, ActionRetry)
	backoffs     = []string{"exponential", "linear", "none"}
	parses       = words(ParseJSON, ParseLines, ParseNumber, ParseTrim)
	notifyKinds  = []string{"failed", "timed_out", "waiting", "quarantined", "interrupted", "skipped", "recovered", "overdue", "paused", "tickets"}
	inputTypes   = []string{"string", "number", "integer", "boolean", "array", "object"}
)

// NotifyKinds returns the kinds of messages for people: the words of events of runs, interrupted for
// a run that failed with the code interrupted, and tickets for tickets that wait.
func NotifyKinds() []string { return slices.Clone(notifyKinds) }

const (
	idPattern       = "^[a-z0-9][a-z0-9_-]{0,63}$"
	stepIDPattern   = "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$"
	variablePattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"
)

var (
	refIDSchema     = map[string]any{"type": "string", "pattern": `^([a-z0-9][a-z0-9_-]{0,63}|([^/\\]+/)*[a-z0-9][a-z0-9_-]{0,63}\.jsonc?)$`}
	idSchema        = map[string]any{"type": "string", "pattern": idPattern}
	conditionSchema = map[string]any{"type": "string", "minLength": 1}
)

// init fills the tables. Their rows refer to functions that use the tables again, for
// nested definitions, which an initializer in the declaration cannot do.
func init() {
	format.definition = table[fileDefinition]{
		idField("id", "Slug of the sentinel; derived from the name if it is missing.", func(d *fileDefinition) *ID { return &d.ID }),
		inputOnly("id", hidden(idField("uniqueId", "The id in an exported entity or a recipe; it has precedence over id.", func(d *fileDefinition) *ID { return &d.uniqueID }))),
		{name: "name", doc: "The display name. Default: the id. One of both is required.", value: "text, not empty", example: `"Build"`,
			schema: map[string]any{"type": "string", "minLength": 1},
			decode: func(d *decoder, n *node, dst *fileDefinition) { dst.Name, _ = d.nonEmptyText(n) },
			encode: func(src *fileDefinition) json.RawMessage { return strictjson.AppendString(nil, src.Name) }},
		textField("description", "What it is for.", func(d *fileDefinition) *string { return &d.Description }),
		numberField("version", "The author's own number; the store counts revisions separately.", 0, func(d *fileDefinition) *int { return &d.Version }),
		textField("recipe", "Name of the context recipe built into $ragContext before each iteration.", func(d *fileDefinition) *string { return &d.Recipe }),
		listField("ragSources", "Context sources besides those of recipe.", func(d *fileDefinition) *[]string { return &d.RAGSources }),
		{name: "inputs", doc: "Parameters of a run: an object that describes each, or only its type.",
			value: "object of inputs, or of their types, by name", example: `{"target": "string"}`,
			schema: func() any {
				return map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": variablePattern},
					"additionalProperties": map[string]any{"anyOf": []any{
						map[string]any{"enum": inputTypes}, map[string]any{"$ref": "#/$defs/input"}}}}
			},
			decode: (*decoder).inputs, encode: encodeInputs},
		{name: "variables", doc: "Values of variables at the start of a run, taken as they are.", value: "object of values by name", example: `{"attempts": 0}`,
			schema: map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": variablePattern}},
			decode: (*decoder).variables, encode: encodeVariables},
		{name: "shell", doc: "What reads the shell lines of its steps. Default sh.",
			value: "`sh` `bash` `zsh` `python` `node` `pwsh`, or a program with its arguments (F7.6)", example: `"bash"`, schema: interpreterSchema,
			decode: (*decoder).shell, encode: encodeShell},
		{name: "env", doc: `Environment variables of the programs that its steps start, taken as they are. {"secret": NAME} is the value of a secret.`,
			value: "object of text, number, boolean or `{\"secret\": ...}` by name (F15)", example: `{"TOKEN": {"secret": "TOKEN"}}`, schema: envSchema,
			decode: (*decoder).env, encode: encodeEnv},
		listField("envFiles", "Files in dotenv form, relative to the workspace; env has precedence.", func(d *fileDefinition) *[]string { return &d.EnvFiles }),
		{name: "trigger", doc: "What starts runs: one trigger or an array of triggers.", value: "a trigger or a list (F5)", example: `{"type": "manual"}`,
			schema: func() any {
				return map[string]any{"anyOf": []any{refSchema("trigger"), map[string]any{"type": "array", "items": refSchema("trigger")}}}
			},
			decode: (*decoder).triggers, encode: encodeTriggers},
		{name: "steps", aliases: []string{recipeSteps}, missing: "steps are missing", doc: "The steps, in the order of execution.",
			value: "list of steps (F3)", example: `[]`, schema: stepsSchema(),
			decode: func(d *decoder, n *node, dst *fileDefinition) { dst.Steps = d.steps(n) },
			encode: func(src *fileDefinition) json.RawMessage { return encodeSteps(src.Steps) }},
		stepsField(BlockOnFailure, "Steps after a run that is not completed, with $result (sentinel schema result).", func(d *fileDefinition) *[]Step { return &d.OnFailure }),
		stepsField(BlockFinally, "Steps after each run, however it ended, with $result (sentinel schema result).", func(d *fileDefinition) *[]Step { return &d.Finally }),
		onErrorField("That of steps that have none and no nested steps.", func(d *fileDefinition) *OnError { return &d.OnError }),
		{name: "loop", doc: "How often the steps are executed. Default once.", value: "a loop (F4)", example: `{"type": "count", "max": 3}`, schema: refSchema("loop"),
			decode: func(d *decoder, n *node, dst *fileDefinition) { dst.Loop = d.loop(n) },
			encode: func(src *fileDefinition) json.RawMessage { return format.loop.encode(&src.Loop) }},
		{name: "tools", doc: "Useful commands: first among the tools of a step, and offered to one with parseToolCalls and no tools. No filter.",
			value: "list of text; an entry may be an object with `name`", example: `["code/read", {"name": "code/edit"}]`,
			schema: func() any {
				return map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{
					map[string]any{"type": "string"}, map[string]any{"type": "object", "required": []string{"name"}}}}}
			},
			decode: (*decoder).tools,
			encode: listField("", "", func(d *fileDefinition) *[]string { return &d.Tools }).encode},
		inputOnly("safety.timeoutMs", durationField("timeoutMs", "Time limit of a run, or safety.timeoutMs if that is smaller.", 1, func(d *fileDefinition) *int64 { return &d.timeoutMs })),
		inputOnly("safety.maxIterations", numberField("maxIterations", "Limit of iterations, or safety.maxIterations if that is smaller.", 1, func(d *fileDefinition) *int { return &d.maxIterations })),
		objectField("safety", "Limits of one run.", `{"maxIterations": 3}`, &format.safety, func(d *fileDefinition) *Safety { return &d.Safety }),
		objectField("budget", "What a run and all its children may spend on models.", `{"calls": 9}`, &format.budget, func(d *fileDefinition) *Budget { return &d.Budget }),
		{name: "concurrency", doc: "What a start does while a run is active. Default: triggers skip, of files queue one firing; other starts begin.",
			value: choices(overlaps) + ", or `{\"overlap\": ...}`", example: `"queue"`,
			schema: func() any {
				return map[string]any{"anyOf": []any{map[string]any{"enum": overlaps}, format.overlap.objectSchema()}}
			},
			decode: (*decoder).concurrency,
			encode: textField("", "", func(d *fileDefinition) *Overlap { return &d.Concurrency }).encode},
		{name: "notify", doc: "Kinds of messages that people get about its runs, or false for none. Default: the setting notify.on.",
			value: "`false`, or a list of " + choices(notifyKinds), example: `["failed", "recovered"]`,
			schema: func() any {
				return map[string]any{"anyOf": []any{map[string]any{"const": false}, map[string]any{"type": "array", "items": map[string]any{"enum": notifyKinds}}}}
			},
			decode: (*decoder).notify, encode: encodeNotify},
		textField("workspace", "Working folder of a run, absolute or relative to the file's folder. It must exist. Inline: to that of the parent, with $references.", func(d *fileDefinition) *string { return &d.Workspace }),
		listField("tags", "Words for searching.", func(d *fileDefinition) *[]string { return &d.Tags }),
		flagField("isPublic", "Whether other users may see it.", func(d *fileDefinition) *bool { return &d.IsPublic }),
		textField("createdBy", "The author.", func(d *fileDefinition) *string { return &d.CreatedBy }),
		// Keys of recipes and editors.
		extraField("$schema"), extraField("displayName"), extraField(recipeTemplate), extraField("strategy"), extraField("layout"), extraField("locked"),
		extraField("roles"), extraField("sentinelTemplates"), extraField("room"), extraField("view"), extraField("entityType"),
		// Run statistics of an exported entity, which the store computes.
		statisticField("lastRunAt"), statisticField("runCount"), statisticField("averageDurationMs"),
		// Keys of entities of other programs.
		entityField("createdAt", ""), entityField("updatedAt", ""), entityField("executions", ""), entityField("executionCount", ""), entityField("lastSuccess", ""),
		entityField("status", ""), entityField("activeHandle", ""), entityField("parentPersonaId", ""), entityField("isTemplate", ""), entityField("parentId", ""),
		entityField("escalationRules", `give another sentinel a trigger on the event "sentinel:ID:failed"`),
	}
	for i := range format.definition { // entities of other programs have null for what is not set
		f := &format.definition[i]
		f.nullable = f.missing == "" && !f.anyValue
	}

	// Limits in a file are at least 1: in a Safety, 0 means no limit, while an author
	// could mean it as a limit of 0.
	format.safety = table[Safety]{
		numberField("maxIterations", "Limit of iterations. Default: none; until, while, continuous and event loops then need timeoutMs.", 1, func(s *Safety) *int { return &s.MaxIterations }),
		durationField("timeoutMs", "Time limit of a run, in milliseconds of running. Default: none.", 1, func(s *Safety) *int64 { return &s.TimeoutMs }),
		durationField("maxStepTimeoutMs", "Time limit of a step that has none of its own, without waits and inner steps. Default: the host's, 30 minutes.", 1, func(s *Safety) *int64 { return &s.MaxStepTimeoutMs }),
		numberField("maxMemoryMb", "Limit of guest memory, variables and child processes. Default: the host's, half of the machine's memory; 1 GiB for variables, and for all in a definition of a model.", 1, func(s *Safety) *int64 { return &s.MaxMemoryMB }),
		numberField("maxSteps", "Limit of step executions in an iteration. Default: the host's, 100,000.", 1, func(s *Safety) *int { return &s.MaxSteps }),
		durationField("finallyTimeoutMs", "Time limit of onFailure and of finally. Default: 60000.", 1, func(s *Safety) *int64 { return &s.FinallyTimeoutMs }),
		choiceField("onTimeout", "What happens at a limit. Default stop.", timeouts, func(s *Safety) *OnTimeout { return &s.OnTimeout }),
		choiceField("onInterrupt", "What happens to a host call in doubt after a crash, for steps and inline definitions without onInterrupt.", interrupts, func(s *Safety) *Interrupt { return &s.OnInterrupt }),
	}

	format.budget = table[Budget]{
		numberField("tokens", "Input and output tokens together.", 1, func(b *Budget) *int64 { return &b.Tokens }),
		{name: "costUsd", doc: "US dollars.", value: "number, more than 0", example: `1.5`, schema: map[string]any{"type": "number", "exclusiveMinimum": 0},
			decode: (*decoder).cost, encode: encodeCost},
		numberField("calls", "Calls of models.", 1, func(b *Budget) *int64 { return &b.Calls }),
	}

	format.overlap = table[Definition]{
		inputOnly("concurrency", choiceField("overlap", "", overlaps, func(d *Definition) *Overlap { return &d.Concurrency })),
	}

	format.input = table[Input]{
		choiceField("type", "JSON type of the value. Default any.", inputTypes, func(i *Input) *string { return &i.Type }),
		textField("description", "What it is for.", func(i *Input) *string { return &i.Description }),
		{name: "required", doc: "Whether a run cannot start without it. Default false: it is then empty.", value: "boolean", example: "true", schema: map[string]any{"type": "boolean"},
			decode: func(d *decoder, n *node, dst *Input) {
				if n.Kind != 't' && n.Kind != 'f' {
					d.wrongType(n, "a boolean")
				}
				dst.Required, dst.Optional = n.Kind == 't', n.Kind == 'f'
			},
			encode: encodeRequired},
		{name: "default", doc: "The value if a run is started without one.", value: "any", example: `1`, schema: true,
			decode: func(_ *decoder, n *node, dst *Input) { dst.Default = n.Canonical() },
			encode: func(src *Input) json.RawMessage { return src.Default }},
		{name: "enum", doc: "The only values allowed.", value: "list, not empty", example: `[1, 2]`, schema: map[string]any{"type": "array", "minItems": 1},
			decode: (*decoder).inputEnum, encode: encodeEnum},
	}

	format.step = table[Step]{
		textField("type", "The step type. Default: inferred from the other fields.", func(s *Step) *StepType { return &s.Type }),
		{name: "id", doc: "Identifies the step, unique in the definition.", value: "letters, digits, `-`, `_`, at most 64, not only digits", example: `"build"`,
			schema: map[string]any{"type": "string", "pattern": stepIDPattern},
			decode: (*decoder).stepID, encode: textField("", "", func(s *Step) *string { return &s.ID }).encode},
		textField("name", "The display name.", func(s *Step) *string { return &s.Name }),
		typeMayReplace(textField("comment", "A note, without effect.", func(s *Step) *string { return &s.Comment })),
		{name: "condition", doc: "The step is executed only if this condition is true.", value: "condition", example: `"$a === 1"`, schema: conditionSchema,
			decode: func(d *decoder, n *node, dst *Step) { dst.Condition, _ = d.expression(n) },
			encode: textField("", "", func(s *Step) *string { return &s.Condition }).encode},
		{name: stepOutput, behindOwn: true, doc: "The variable that the output is stored in.", value: "name `" + variablePattern + "`", example: `"result"`,
			schema: map[string]any{"type": "string", "pattern": variablePattern},
			decode: (*decoder).outputTo, encode: textField("", "", func(s *Step) *string { return &s.OutputTo }).encode},
		behindOwn(typeMayReplace(choiceField("parse", "How the text of the output becomes outputTo. Default: outputTo is the whole output.", parses, func(s *Step) *Parse { return &s.Parse }))),
		behindOwn(onErrorField("What happens after an error of the step. Default fail.", func(s *Step) *OnError { return &s.OnError })),
		behindOwn(typeMayReplace(durationField("timeoutMs", "Time limit of the step.", 1, func(s *Step) *int64 { return &s.TimeoutMs }))),
		behindOwn(choiceField("onInterrupt", "What happens to a host call in doubt after a crash.", interrupts, func(s *Step) *Interrupt { return &s.OnInterrupt })),
	}

	format.onError = table[OnError]{
		{name: "retry", missing: `"retry" is missing`, value: "object", example: `{"maxRetries": 2}`, schema: func() any { return format.retry.objectSchema() },
			decode: func(d *decoder, n *node, dst *OnError) {
				dst.Action = ActionRetry
				format.retry.read(d, n, &dst.Retry)
			},
			encode: func(src *OnError) json.RawMessage { return format.retry.encode(&src.Retry) }},
	}

	format.retry = table[RetryPolicy]{
		numberField("maxRetries", "Attempts after the first one. Default: by the kind of error, 0 to 7.", 1, func(r *RetryPolicy) *int { return &r.MaxRetries }),
		choiceField("backoffType", "How the delay grows; with none it stays baseDelayMs, by default 0.", backoffs, func(r *RetryPolicy) *string { return &r.BackoffType }),
		durationField("baseDelayMs", "The shortest delay. Default: by the kind of error, 1 to 5 s.", 1, func(r *RetryPolicy) *int64 { return &r.BaseDelayMs }),
		durationField("maxDelayMs", "The longest delay. Default: no limit.", 1, func(r *RetryPolicy) *int64 { return &r.MaxDelayMs }),
		durationField("maxRetryAfterMs", "The longest delay that a server may request; beyond it, no retry. Default: 24 h.", 1,
			func(r *RetryPolicy) *int64 { return &r.MaxRetryAfterMs }),
		retryCondition("when", "Retry only if this is true of $error: text, code, category, exitCode.", `"$error.exitCode === 75"`, func(r *RetryPolicy) *string { return &r.When }),
		retryCondition("unless", "Do not retry if this is true of $error: text, code, category, exitCode.", `"$error.code === 'not_found'"`, func(r *RetryPolicy) *string { return &r.Unless }),
	}

	format.loop = table[Loop]{
		required("type is missing", example(`"continuous"`, choiceField("type", "The kind of loop.", loopTypes, func(l *Loop) *LoopType { return &l.Type }))),
		{name: "max", of: words(LoopCount), missing: needed, elsewhere: `to limit iterations, use "maxIterations" in "safety"`,
			doc: "The number of iterations, or a $reference to it.", value: "whole number from 1, or exactly one reference", example: `3`,
			schema: map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 1}, map[string]any{"type": "string", "pattern": `^\$`}}},
			decode: (*decoder).loopMax, encode: func(src *Loop) json.RawMessage { return src.Max }},
		{name: "check", aliases: []string{"if"}, of: words(LoopUntil, LoopWhile), missing: needed,
			doc: "A condition on the variables.", value: "condition", example: `"$a === 1"`, schema: conditionSchema,
			decode: func(d *decoder, n *node, dst *Loop) { dst.Check, _ = d.expression(n) },
			encode: textField("", "", func(l *Loop) *string { return &l.Check }).encode},
		only(words(LoopContinuous), durationField("intervalMs", "Delay between iterations.", 0, func(l *Loop) *int64 { return &l.IntervalMs })),
		{name: "event", of: words(LoopEvent), missing: needed,
			doc: `A pattern of event names; "*" matches one segment, a final "**" all that follow.`, value: "pattern (F5.3)", example: `"git:push"`, schema: conditionSchema,
			decode: func(d *decoder, n *node, dst *Loop) { dst.Event = d.pattern(n) },
			encode: textField("", "", func(l *Loop) *string { return &l.Event }).encode},
		only(words(LoopEvent), choiceField("source", "Whose events sentinel:ID:WORD.", words(EventSources()...), func(l *Loop) *EventSource { return &l.Source })),
	}

	format.trigger = table[Trigger]{
		{name: "type", missing: "type is missing", doc: "The kind of trigger.", value: "a type that the host supports", example: `"immediate"`,
			schema: func() any { return map[string]any{"type": "string"} },
			decode: func(d *decoder, n *node, dst *Trigger) { dst.Type, _ = d.nonEmptyText(n) }, encode: textField("", "", func(t *Trigger) *string { return &t.Type }).encode},
		{name: string(TriggerEvent), doc: "A pattern of event names, or a list of them. Kinds that fire at events need it.", value: "pattern or list of patterns (F5.3)", example: `"git:push"`,
			schema: map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "minItems": 1, "maxItems": maxPatterns, "items": map[string]any{"type": "string"}}}},
			decode: func(d *decoder, n *node, dst *Trigger) { dst.Event = d.patterns(n) },
			encode: encodePatterns},
		{name: string(TriggerCron), aliases: []string{"schedule", "cron"}, doc: "A cron expression. Kinds that fire at times need it.", value: "cron expression", example: `"0 3 * * *"`,
			schema: map[string]any{"type": "string"},
			decode: func(d *decoder, n *node, dst *Trigger) { dst.CronExpression, _ = d.nonEmptyText(n) },
			encode: textField("", "", func(t *Trigger) *string { return &t.CronExpression }).encode},
	}
}

// Keys that have a meaning beyond their own field.
const (
	recipeSteps    = "pipeline"    // a file with this name of "steps" is a recipe
	recipeTemplate = "ragTemplate" // names the context sources of a file without others
	stepOutput     = "outputTo"
)
