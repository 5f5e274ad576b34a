package sentinels

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// An otherWord is a key, or the name of a step type, of other systems that does not exist
// here, with what to write instead.
type otherWord struct {
	in    string // the objects that have it, separated by spaces; "" for any
	names string // in the form of fold, separated by spaces
	hint  string // {} is the value in the form of as; of a step type, the whole step
	as    func(n *node) string
}

// The objects in which a word means something.
const (
	inDefinition = "definition"
	inStep       = "step"
	inTrigger    = "trigger"
	inLoop       = "loop"
	inRetry      = "retry"
	inOnError    = "onError"
	inType       = "type" // the name of a step type
	inKind       = "kind" // the name of a type of triggers
)

// otherWords is the only table of words of other systems and of the later documents of the
// original one. The first row that fits counts, so that rows of one step type precede those
// of all.
func otherWords() []otherWord {
	otherWordsOnce.Do(func() { otherWordsMade = append(retryWords(), allWords()...) })
	return otherWordsMade
}

// The rows of otherWords: not an initialized variable, because the forms of some rows read the others.
var (
	otherWordsOnce sync.Once
	otherWordsMade []otherWord
)

// allWords are the rows of otherWords without those of a retry.
func allWords() []otherWord {
	return []otherWord{
		// Step types.
		{in: inType, names: "error throw abort exit", hint: `write {}`, as: failStep},
		{in: inType, names: "https fetch request rest restcall httprequest httpcall httpget httppost webrequest api curl wget get post", hint: `write {}`, as: requestStep},
		{in: inType, names: "foreach for each map iterate", hint: `write {}`, as: stepOf("loop", "items=each list=each in=each collection=each over=each forEach=each foreach=each do=steps body=steps tasks=steps as=as item=as", "each", "steps")},
		{in: inType, names: "while until repeat dowhile", hint: `write {}`, as: stepOf("loop", "condition=while check=while if=while do=steps body=steps tasks=steps times=count n=count", "steps")},
		{in: inType, names: "sleep delay pause timer", hint: `write {}`, as: stepOf("wait", "ms=durationMs duration=durationMs seconds=durationMs:s secs=durationMs:s delay=durationMs time=durationMs for=durationMs delayMs=durationMs", "durationMs")},
		{in: inType, names: "switch choice case match", hint: `write {}`, as: switchStep},
		{in: inType, names: "break", hint: `{}`, as: asBreak},
		{in: inType, names: "continue next", hint: `{}`, as: asContinue},
		{in: inType, names: "if branch when ifelse", hint: `write {}`, as: stepOf("condition", "if=check condition=check expression=check expr=check when=check", "check", "then")},
		{in: inType, names: "script bash zsh sh exec execute run cmd terminal powershell pwsh python python3 node nodejs", hint: `write {}`, as: scriptStep},
		{in: inType, names: "log print echo message console", hint: `write {}`, as: echoStep},
		{in: inType, names: "ai openai gpt chat chatgpt claude anthropic prompt agent completion model", hint: `write {}`, as: stepOf("llm", "message=prompt text=prompt instructions=system systemPrompt=system input=prompt", "prompt")},
		{in: inType, names: "approval human confirm manualapproval input review gate", hint: `write {}`, as: stepOf("approve", "message=prompt text=prompt question=prompt description=prompt users=approvers", "prompt")},
		{in: inType, names: "event publish trigger signal raise", hint: `write {}`, as: stepOf("emit", "name=event topic=event type=event payload=data body=data", "event")},
		{in: inType, names: "notify notification slack email mail", hint: `write {"type": "command", "command": "notify/send", "params": {"text": ...}}`},
		{in: inType, names: "code function javascript js inlinescript", hint: `write {}`, as: codeStep},
		{in: inType, names: "assign variable variables setvariable setvar let var compute transform eval", hint: `write {"type": "set", "values": {"NAME": {"expr": "..."}}}`},
		{in: inType, names: "subworkflow workflow call invoke pipeline job childworkflow", hint: `write {}`, as: childStep},
		{in: inType, names: "webresearch", hint: `fetch pages with a step of type http and read them in a step of type llm; or "sentinel plugin new" for a step type of your own`},
		{in: inType, names: "codingagent", hint: `use a step of type llm with "parseToolCalls": true and "tools": ["code/*"], or start the agent with a step of type shell`},
		{in: inType, names: "escalate", hint: `use a step of type approve, or one of type emit and a sentinel with a trigger on the event`},

		// Keys of steps.
		{in: inStep, names: "if when onlyif", hint: `write "condition": {}`, as: asCondition},
		{in: inStep, names: "where", hint: `write "condition": {}`, as: asWhere},
		{in: inStep, names: "unless", hint: `write "condition": {}`, as: asNegation},
		{in: "shell", names: "run script exec shellcommand commandline code source", hint: `write {}`, as: asOwnScript},
		{in: "shell", names: "language lang interpreter runtime", hint: `write "shell": {}`, as: asInterpreter},
		{in: inStep, names: "bash zsh python python3 node nodejs powershell pwsh", hint: `write {}`, as: asKeyScript},
		{in: inStep, names: "run script exec shellcommand commandline", hint: `write {}`, as: asLine},
		{in: inStep, names: "uses action", hint: `actions of other systems do not run here: write "type": "shell" and the command that does the same; a run works in its workspace, without a checkout`},
		{in: "sentinel", names: "with args arguments input params parameters", hint: `write "inputs": {}`},
		{in: "group loop", names: "catch rescue", hint: `write "onFailure": {}`, as: asSteps},
		{in: inStep, names: "catch rescue", hint: `write {"type": "group", "steps": [...], "onFailure": {}}, with this step in "steps"`, as: asSteps},
		{in: inStep, names: "with args arguments", hint: `write each as a field of the step`},
		{in: inStep, names: "needs dependson after runafter", hint: `leave it out: steps are executed in their order`},
		{in: inStep, names: "retries maxretries retrycount retry retrypolicy", hint: `write "onError": {}`, as: asRetry},
		{in: inStep, names: "attempts maxattempts", hint: `write "onError": {}`, as: asAttempts},
		{in: inStep, names: "continueonerror ignoreerrors ignoreerror allowerrors ignorefailure", hint: `write "onError": {}`, as: asSkip},
		{in: inStep, names: "timeout timeoutseconds timeoutsecs timeoutminutes timeoutmins timeoutsec timeoutmin timelimit", hint: `write "timeoutMs": {}`, as: asTime},
		{in: "wait", names: "duration seconds secs minutes delay delayms sleep ms", hint: `write "durationMs": {}`, as: asTime},
		{in: "loop", names: "items list in over foreach collection withitems", hint: `write "each": {}`},
		{in: "loop", names: "times repeat n iterations", hint: `write "count": {}`},
		{in: "loop", names: "max", hint: `write {}`, as: asLoopMax},
		{in: "loop", names: "concurrency parallel parallelism maxparallel maxconcurrency", hint: `write "maxConcurrent": {}`},
		{in: inStep, names: "break breakif breakon breakwhen", hint: `{}`, as: asBreak},
		{in: inStep, names: "continue continueif continueon skipif", hint: `{}`, as: asContinue},
		{in: inStep, names: "switch choice cases choices match", hint: `write {}`, as: func(n *node) string { return switchStep(n.Parent()) }},
		{in: "sentinel", names: "ref workflow sentinel sentinelid file path subworkflow child run call uses", hint: `write "definition": {}`, as: asRef},
		{in: "loop", names: "do body tasks", hint: `write "steps": {}`, as: asSteps},
		{in: "loop", names: "item itemname var", hint: `write "as": {}`},
		{in: "loop", names: "index", hint: `write "indexAs": {}`},
		{in: "condition", names: "expression expr when test", hint: `write "check": {}`, as: asCondition},
		{in: "condition", names: "otherwise orelse elseif elif", hint: `write "else": [...], a list of steps`},
		{in: "parallel", names: "tasks jobs", hint: `write "branches": [[...], [...]], a list of steps for each`},
		{in: "shell", names: "workingdirectory workdir dir directory chdir", hint: `write "cwd": {}`},
		{in: "shell", names: "environment envs variables vars", hint: `write "env": {}`},
		{in: "shell", names: "input", hint: `write "stdin": {}`},
		{in: "llm", names: "outputschema responseformat responseschema jsonschema format structuredoutput", hint: `write "schema": {}`},
		{in: "llm", names: "message messages input instruction user", hint: `write "prompt": {}`},
		{in: "http", names: "uri endpoint address href link", hint: `write "url": {}`},
		{in: "http", names: "verb httpmethod", hint: `write "method": {}`},
		{in: "http", names: "params querystring queryparams queryparameters search", hint: `write "query": {}`},
		{in: "http", names: "data payload content jsonbody", hint: `write "json": {}, or "form" or "body"`},
		{in: "http", names: "token bearer bearertoken authtoken", hint: `write "auth": {"bearer": {}}; {"secret": NAME} is the value of a secret`},
		{in: "http", names: "basic basicauth credentials user username password", hint: `write "auth": {"basic": {"username": "...", "password": {"secret": NAME}}}`},
		{in: "http", names: "header", hint: `write "headers": {}`},
		{in: "http", names: "followredirects maxredirects redirect follow", hint: `write "redirects": 5, the number that is followed, or 0`},
		{in: "http", names: "status statuscode expectedstatus expectstatus successcodes validstatus acceptedstatuscodes", hint: `write "expect": {}`},
		{in: "http", names: "failonerror throwonerror ignorehttperrors", hint: `write "allowFailure": true, and test $x.success or $x.status`},
		{in: "http", names: "responsetype responseformat output format", hint: `leave it out: the output has "text", and "json" if the body is JSON`},
		{in: "approve", names: "message text question title", hint: `write "prompt": {}`},
		{in: "emit", names: "topic channel", hint: `write "event": {}`},
		{in: inStep, names: "matrix strategy", hint: `write {}`, as: matrixLoop},
		{in: inStep, names: "concurrency", hint: `"concurrency" is a key of the definition: write "concurrency": {} there`, as: asOverlap},
		{in: inStep, names: "foreach items withitems withlist each", hint: `write {"type": "loop", "each": {}, "steps": [...]}`},
		{in: inStep, names: "sleep delay", hint: `write {"type": "wait", "durationMs": {}}`, as: asTime},
		{in: inStep, names: "register output outputs saveas store storeas assign outputvariable outputvar result resultto", hint: `write "outputTo": {}`},
		{in: inStep, names: "label title displayname", hint: `write "name": {}`},
		{in: inStep, names: "description note notes", hint: `write "comment": {}`},
		{in: inStep, names: "disabled skip", hint: `write "condition": "false"`},
		{in: inStep, names: "enabled", hint: `write "condition": {}`, as: asCondition},
		{in: inStep, names: "runson image container docker", hint: `leave it out: steps are executed on this machine; a step of type shell can start a container`},

		// Keys of definitions.
		{in: inDefinition, names: "catch rescue", hint: `write "onFailure": {}`, as: asSteps},
		{in: inDefinition, names: "on triggers", hint: `write "trigger": {}`, as: asTrigger},
		{in: inDefinition, names: "schedule cron crontab", hint: `write "trigger": {"type": "schedule", "cronExpression": {}}`, as: asCron},
		{in: inDefinition, names: "every interval", hint: `write "trigger": {"type": "schedule", "cronExpression": {}}`, as: asEvery},
		{in: inDefinition, names: "jobs stages tasks actions nodes workflow script run", hint: `write "steps": [...], in the order of their execution`},
		{in: inDefinition, names: "params parameters args arguments", hint: `write "inputs": {}`, as: asInputs},
		{in: inDefinition, names: "vars constants", hint: `write "variables": {}`},
		{in: inDefinition, names: "environment", hint: `write "env": {}`, as: asEnv},
		{in: inDefinition, names: "needs dependson after", hint: `write "trigger": {"type": "event", "event": "sentinel:ID:completed"}, with the id of the other sentinel`},
		{in: inDefinition, names: "maxtimesecs timeout timeoutseconds timeoutsecs timeoutminutes", hint: `write "timeoutMs": {}`, as: asTime},
		{in: "safety", names: "timeout timeoutseconds timeoutsecs timeoutminutes maxtimesecs", hint: `write "timeoutMs": {}`, as: asTime},
		{in: inDefinition, names: "retries maxretries retry", hint: `write "onError": {} in each step`, as: asRetry},
		{in: inDefinition, names: "repeat times count", hint: `write "loop": {"type": "count", "max": {}}`},
		{in: inDefinition, names: "workingdirectory workdir cwd dir", hint: `write "workspace": {}`},
		{in: inDefinition, names: "runson image container permissions", hint: `leave it out: steps are executed on this machine`},
		{in: inDefinition, names: "model prompt", hint: `write it in a step of type llm`},

		// Keys of triggers and loops.
		{in: "schedule", names: "every interval intervalms", hint: `write "cronExpression": {}`, as: asEvery},
		{in: "schedule", names: "at time", hint: `write "cronExpression": "30 2 * * *", here for 2:30 each day`},
		{in: "schedule", names: "tz timezone zone", hint: `write "timeZone": {}`},
		{in: "webhook", names: "path url endpoint route", hint: `leave it out: the path is /v1/hooks/ and the id of the sentinel`},
		{in: "webhook", names: "secret token key", hint: `write "secretEnv": NAME, an environment variable of the host with the secret`},
		{in: "file", names: "path files glob globs pattern patterns watch include", hint: `write "paths": {}`, as: asList},
		{in: "file", names: "exclude", hint: `write "ignore": {}`, as: asList},
		{in: "event", names: "name topic pattern on", hint: `write "event": {}`},
		{in: inKind, names: "watch watcher files filesystem filewatch path", hint: `write "type": "file"`},
		{in: inKind, names: "hook webhooks http https api request push pullrequest", hint: `write "type": "webhook"`},
		{in: inKind, names: "timer interval crontab cronjob every time", hint: `write "type": "schedule"`},
		{in: inKind, names: "events signal message topic queue", hint: `write "type": "event"`},
		{in: inKind, names: "once start startup boot", hint: `write "type": "immediate"`},
		{in: inKind, names: "workflowdispatch none", hint: `write "type": "manual"`},
		{in: inTrigger, names: "max maxfirings maxfires maxexecutions limit times", hint: `write "maxRuns": {}`},
		{in: inTrigger, names: "if when condition where", hint: `write "filter": {}`, as: asCondition},
		{in: inLoop, names: "condition while until when where", hint: `write "check": {}`, as: asCondition},
		{in: inLoop, names: "count times iterations maxiterations", hint: `write "max": {}`},
		{in: inLoop, names: "interval delay delayms every", hint: `write "intervalMs": {}`, as: asTime},

		// Keys of onError.
		{in: inOnError, names: "action type do policy strategy behavior mode", hint: `write "onError": {}`, as: asAction},
		{in: inOnError, names: "steps then run catch handler", hint: `write {"type": "group", "steps": [...], "onFailure": {}}, with this step in "steps"`, as: asSteps},

		// Of any object.
		{names: "activeadapters", hint: `adapters are part of a model: name the model that has them in "model"`},
		{names: "maxtimesecs", hint: `write "safety": {"timeoutMs": ...}, in milliseconds`},
		{names: "maxcostusd", hint: `write "costUsd"`},
		{names: "permissionmode", hint: `"tools" of a step limit what a model may call`},
	}
}

// retryWords are the rows of otherWords for the keys of a retry.
func retryWords() []otherWord {
	return []otherWord{
		{in: inRetry, names: "attempts maxattempts maximumattempts tries maxtries", hint: `write "maxRetries": {}, the attempts after the first one`, as: asRetries},
		{in: inRetry, names: "retries count limit max times", hint: `write "maxRetries": {}`},
		{in: inRetry, names: "delay delayms delayseconds initialdelay initialdelayms initialinterval initialintervalms interval intervalms wait sleep mindelay", hint: `write "baseDelayMs": {}`, as: asShortTime},
		{in: inRetry, names: "maxinterval maxintervalms maximuminterval maxdelay maxbackoff", hint: `write "maxDelayMs": {}`, as: asShortTime},
		{in: inRetry, names: "backoff strategy backoffstrategy type backoffcoefficient backoffrate multiplier factor", hint: `write "backoffType": {}`, as: asBackoff},
		{in: inRetry, names: "if on retryif retryon condition while", hint: `write "when": {}`, as: asCondition},
	}
}

// otherWordHint returns what to write for a word of another system in one of the given
// kinds of objects, "" if the word means nothing. n is its value, or the step of a type.
func (s *decodeState) otherWordHint(word string, n *node, kinds ...string) string {
	word = fold(word)
	for _, w := range otherWords() {
		if !slices.Contains(strings.Fields(w.names), word) || w.in != "" && !slices.ContainsFunc(strings.Fields(w.in), func(in string) bool { return slices.Contains(kinds, in) }) {
			continue
		}
		if own := statusStep(n, w.as != nil && w.in == inStep && strings.HasPrefix(w.hint, `write "condition"`)); own != "" {
			return own
		}
		if action := asAction(n); action != "" && n.Kind == '"' && slices.Contains(kinds, inOnError) {
			return `write "onError": ` + action
		}
		value := ""
		if strings.Contains(w.hint, "{}") {
			as := w.as
			if as == nil {
				as = asWritten
			}
			value = textcut.Mark(as(n), maxProblemText/2)
		}
		return strings.ReplaceAll(w.hint, "{}", value)
	}
	return ""
}

// asWritten returns a value as it is written, on one line.
func asWritten(n *node) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(n.Any()) // numbers are json.Number
	text := strings.TrimSpace(b.String())
	if n.Kind == '{' {
		parts := make([]string, len(n.Members))
		for i, m := range n.Members {
			parts[i] = quoted(m.Name) + ": " + asWritten(m.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	if n.Kind == '[' {
		parts := make([]string, len(n.Items))
		for i, item := range n.Items {
			parts[i] = asWritten(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return text
}

// quoted returns a text as JSON.
func quoted(text string) string { return string(strictjson.AppendString(nil, text)) }

// plainText returns the text of a string, and any other value as it is written.
func plainText(n *node) string {
	if n.Kind == '"' {
		return n.Text
	}
	return asWritten(n)
}

// bracesPattern matches {{ x }} and ${{ x }}.
var bracesPattern = lazyregexp.New(`\$?\{\{\s*(.*?)\s*\}\}`)

// withoutTemplate removes the braces of other systems around and within an expression.
func withoutTemplate(text string) string {
	for _, m := range bracesPattern.FindAllStringSubmatch(text, -1) {
		inner := m[1]
		if !strings.HasPrefix(inner, "$") && len(inner) > 0 && (inner[0] == '_' || inner[0] >= 'a' && inner[0] <= 'z' || inner[0] >= 'A' && inner[0] <= 'Z') && !strings.HasPrefix(inner, "true") && !strings.HasPrefix(inner, "false") {
			inner = "$" + inner
		}
		text = strings.Replace(text, m[0], inner, 1)
	}
	return strings.TrimSpace(text)
}

func asCondition(n *node) string { return quoted(withoutTemplate(plainText(n))) }

func asNegation(n *node) string { return quoted("!(" + withoutTemplate(plainText(n)) + ")") }

// asLine returns the fields of a shell step for a line, or for a list of a program and its
// arguments or of lines.
func asLine(n *node) string {
	switch {
	case n.Kind != '[':
		return `"type": "shell", "command": ` + asWritten(n)
	case slices.ContainsFunc(n.Items, func(item *node) bool { return strings.Contains(plainText(item), " ") }):
		lines := make([]string, len(n.Items))
		for i, item := range n.Items {
			lines[i] = plainText(item)
		}
		return `"type": "shell", "command": ` + quoted(strings.Join(lines, " && "))
	}
	return `"type": "shell", "argv": ` + asWritten(n)
}

// asOwnLine is asLine for a step that has its type.
func asOwnLine(n *node) string { return strings.TrimPrefix(asLine(n), `"type": "shell", `) }

func asRetry(n *node) string {
	switch {
	case n.Kind == '0':
		return `{"retry": {"maxRetries": ` + n.Text + `}}`
	case n.Kind == '{':
		return `{"retry": ` + retryPolicy(n) + `}`
	}
	return `{"retry": {"maxRetries": 3}}`
}

func asAttempts(n *node) string { return `{"retry": {"maxRetries": ` + asRetries(n) + `}}` }

func asSkip(n *node) string {
	if n.Kind == 'f' {
		return `"fail"`
	}
	return `"skip"`
}

// asTime returns a duration as a text: the number of a key that names its unit, or a text.
func asTime(n *node) string {
	name := n.Key()
	switch folded := fold(name); {
	case n.Kind == '"' && shortDuration(n.Text) != "":
		return quoted(shortDuration(n.Text))
	case n.Kind != '0':
		return asWritten(n)
	case strings.Contains(folded, "min"):
		return quoted(n.Text + "m")
	case strings.HasSuffix(folded, "ms"):
		return n.Text
	case strings.Contains(folded, "sec"):
		return quoted(n.Text + "s")
	}
	return n.Text + ", in milliseconds, or " + quoted(n.Text+"s")
}

// asLoopMax returns the field of a loop that a maximum probably means: a loop with a list has as many iterations as items.
func asLoopMax(n *node) string {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return n.Parent().Member(name) != nil })
	}
	switch {
	case has("each", "items"):
		return `"maxConcurrent": ` + asWritten(n) + `, the items that are executed at once`
	case has("while", "until"):
		return `"maxIterations": ` + asWritten(n)
	}
	return `"count": ` + asWritten(n)
}

// asWhere returns the condition of a step. That of a loop with a list is about its items, which only its steps have.
func asWhere(n *node) string {
	if n.Parent().Member("each") != nil {
		return asCondition(n) + " in each of its steps, or filter the list"
	}
	return asCondition(n)
}

// eachHint returns what to write for a member of the each of a loop that filters it, or that names its list; "" for others.
func eachHint(each *node, m member) string {
	if each.Key() != "each" || each.Parent().Member("steps") == nil {
		return ""
	}
	name := fold(m.Name)
	list := ""
	for _, key := range []string{"expr", "list", "items", "in", "of"} {
		if n := each.Member(key); n != nil && list == "" {
			list = plainText(n)
		}
	}
	switch {
	case name != "expr" && slices.Contains([]string{"list", "items", "in", "of"}, name):
		return `write "each": ` + asWritten(m.Value)
	case !slices.Contains([]string{"where", "filter", "if", "when", "condition"}, name):
		return ""
	case list == "":
		return `give each of the loop's steps "condition": ` + asCondition(m.Value)
	}
	item := "item"
	if as := each.Parent().Member("as"); as != nil {
		item = plainText(as)
	}
	test := strings.ReplaceAll(withoutTemplate(plainText(m.Value)), "$"+item, item)
	return `write "each": {"expr": ` + quoted(list+".filter("+item+" => "+test+")") + "}"
}

func asList(n *node) string {
	if n.Kind == '[' {
		return asWritten(n)
	}
	return "[" + asWritten(n) + "]"
}

func asSteps(n *node) string {
	if n.Kind == '{' && len(n.Members) == 0 {
		return "[...]"
	}
	if n.Kind == '{' {
		return "[" + asWritten(n) + "]"
	}
	return asWritten(n)
}

// asEvery returns the cron expression of an interval.
func asEvery(n *node) string {
	switch short := shortDuration(plainText(n)); {
	case short != "":
		return quoted("@every " + short)
	case n.Kind == '0' && strings.HasSuffix(n.Key(), durationSuffix):
		return quoted("@every " + n.Text + "ms")
	}
	return `"@every 5m"`
}

// asCron returns a cron expression, also one in the lists and objects of other systems.
func asCron(n *node) string {
	switch {
	case n.Kind == '[' && len(n.Items) > 0:
		return asCron(n.Items[0])
	case n.Kind == '{' && n.Member("cron") != nil:
		return asCron(n.Member("cron"))
	case n.Kind == '"' && shortDuration(n.Text) != "":
		return asEvery(n)
	case n.Kind == '"':
		return asWritten(n)
	}
	return `"0 3 * * *"`
}

// asTrigger returns the trigger for a text, or for what other systems start at.
func asTrigger(n *node) string {
	name := n.Text
	switch {
	case n.Kind == '[' && len(n.Items) > 0:
		var list []string
		for _, item := range n.Items {
			if trigger := asTrigger(item); !slices.Contains(list, trigger) {
				list = append(list, trigger)
			}
		}
		if len(list) == 1 {
			return list[0]
		}
		return "[" + strings.Join(list, ", ") + "]"
	case n.Kind == '{' && n.Member("type") != nil:
		return typedTrigger(n)
	case n.Kind == '{' && n.Member("schedule") != nil:
		return `{"type": "schedule", "cronExpression": ` + asCron(n.Member("schedule")) + `}`
	case n.Kind == '{' && len(n.Members) > 0:
		name = n.Members[0].Name
	}
	switch fold(name) {
	case "manual", "immediate":
		return `{"type": ` + quoted(fold(name)) + `}`
	case "workflowdispatch":
		return `{"type": "manual"}`
	case "push", "pullrequest", "webhook", "release", "issues":
		return `{"type": "webhook", "secretEnv": "HOOK_SECRET"}`
	}
	if strings.Contains(name, ":") {
		return `{"type": "event", "event": ` + quoted(name) + `}`
	}
	if strings.Count(strings.TrimSpace(name), " ") == 4 || strings.HasPrefix(name, "@") || shortDuration(name) != "" {
		return `{"type": "schedule", "cronExpression": ` + asCron(n) + `}`
	}
	return `{"type": "manual"}`
}

// asInputs returns a list of names as the object of inputs.
func asInputs(n *node) string {
	if n.Kind != '[' {
		return asWritten(n)
	}
	var parts []string
	for _, item := range n.Items {
		name := plainText(item)
		if inner := item.Member("name"); inner != nil {
			name = plainText(inner)
		}
		parts = append(parts, quoted(name)+`: "string"`)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// asEnv returns a list of NAME=value, or of objects, as an object.
func asEnv(n *node) string {
	if n.Kind != '[' {
		return asWritten(n)
	}
	var parts []string
	for _, item := range n.Items {
		switch name, value, ok := strings.Cut(plainText(item), "="); {
		case item.Kind == '"' && ok:
			parts = append(parts, quoted(name)+": "+quoted(value))
		case item.Kind == '{' && item.Member("name") != nil && item.Member("value") != nil:
			parts = append(parts, quoted(plainText(item.Member("name")))+": "+asWritten(item.Member("value")))
		case item.Kind == '{':
			for _, m := range item.Members {
				parts = append(parts, quoted(m.Name)+": "+asWritten(m.Value))
			}
		default:
			parts = append(parts, quoted(name)+`: "..."`)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// failStep returns a step of type fail with the message of a step.
func failStep(n *node) string {
	message := "what failed"
	for _, name := range []string{"message", "reason", "text", "error"} {
		if m := n.Member(name); m != nil {
			message = plainText(m)
			break
		}
	}
	return `{"type": "fail", "message": ` + quoted(message) + `}`
}

// echoStep returns a shell step that prints the message of a step.
func echoStep(n *node) string {
	for _, name := range []string{"message", "text", "value", "msg", "content"} {
		if m := n.Member(name); m != nil {
			return `{"type": "shell", "argv": ["echo", ` + asWritten(m) + `]}`
		}
	}
	return `{"type": "shell", "argv": ["echo", "..."]}`
}

// requestFields are the fields of a request by their names in other systems, in the form of fold.
var requestFields = map[string]string{
	"uri": "url", "endpoint": "url", "address": "url", "href": "url", "verb": "method", "params": "query", "querystring": "query", "queryparams": "query",
	"data": "json", "payload": "json", "timeout": "timeoutMs", "status": "expect", "expectedstatus": "expect", "statuscode": "expect",
}

// requestStep returns a step of type http that makes the request of a step.
func requestStep(n *node) string {
	var parts []string
	have := map[string]bool{}
	for _, m := range n.Members {
		name, value := ownMember(m, "http", inStep)
		if own := requestFields[fold(m.Name)]; own != "" {
			name, value = own, asWritten(m.Value)
		}
		switch {
		case name == "" || m.Name == "type" || have[name]:
			continue
		case name == "timeoutMs" && m.Value.Kind == '0' && len(m.Value.Text) < 4: // seconds: no request ends in milliseconds
			value = quoted(m.Value.Text + "s")
		case name == "body" && (m.Value.Kind == '{' || m.Value.Kind == '['):
			name = "json"
		}
		have[name] = true
		parts = append(parts, quoted(name)+": "+value)
	}
	if !have["url"] {
		parts = append([]string{`"url": "https://..."`}, parts...)
	}
	if !have["method"] && (have["json"] || have["form"] || have["body"]) {
		parts = append([]string{`"method": "POST"`}, parts...)
	}
	return `{"type": "http", ` + strings.Join(parts, ", ") + "}"
}

// stepOf returns a function that writes a step with another type. renames has NAME=FIELD
// for fields with another name there, and NAME=FIELD:s for seconds of what is milliseconds
// here; fields that the step lacks and the type needs have "..." as their value.
func stepOf(typ, renames string, needed ...string) func(n *node) string {
	return func(n *node) string {
		parts := []string{`"type": ` + quoted(typ)}
		have := map[string]bool{}
		for _, m := range n.Members {
			if m.Name == "type" {
				continue
			}
			name, value := ownMember(m, typ, inStep)
			if name == "" {
				continue
			}
			for _, rename := range strings.Fields(renames) {
				from, to, _ := strings.Cut(rename, "=")
				to, unit, _ := strings.Cut(to, ":")
				if from != m.Name {
					continue
				}
				name, value = to, asWritten(m.Value)
				switch {
				case to == "durationMs" && unit != "" && m.Value.Kind == '0':
					value = quoted(m.Value.Text + unit)
				case to == "durationMs":
					value = oneTime(asTime(m.Value))
				case to == "check" || to == "while":
					value = asCondition(m.Value)
				case to == "steps" || to == "then":
					value = asSteps(m.Value)
				}
			}
			if have[name] {
				continue
			}
			have[name] = true
			parts = append(parts, quoted(name)+": "+value)
		}
		for _, name := range needed {
			if have[name] {
				continue
			}
			switch name {
			case "steps", "then":
				parts = append(parts, quoted(name)+": [...]")
			case "durationMs":
				parts = append(parts, `"durationMs": "5s"`)
			default:
				parts = append(parts, quoted(name)+`: "..."`)
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
}

// stepWord returns the fields to write for a key of a step without type that is a word of
// another system, and the key; "" if there is none.
func (s *decodeState) stepWord(n *node) (hint, key string) {
	for _, m := range n.Members {
		if format.step.find(m.Name) != nil {
			continue
		}
		if hint := s.otherWordHint(m.Name, m.Value, inStep); hint != "" {
			return fmt.Sprintf("%q is a word of other systems: %s", m.Name, hint), m.Name
		}
	}
	return "", ""
}
