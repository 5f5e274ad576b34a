package help

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

//go:embed topics
var files embed.FS

// Topics are the topics of help, in the order in which an author needs them.
var Topics = []string{"format", "references", "expressions", "steps", "triggers", "events", "variables", "environment", "retries", "budgets", "exit-codes", "plugins", "models", "notifications", "loop", "shell", "shell-quoting", "cron", "errors", "globs"}

// helpCommand takes the place of cobra's: it knows topics besides commands. A topic has
// precedence over the command with its name, whose own help is COMMAND --help.
func (a verbs) helpCommand(root *cobra.Command) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "help [TOPIC | COMMAND]", Short: "Explain a topic of the format, or a command",
		Long:      "Topics: " + strings.Join(Topics, ", ") + ".\n--all writes all topics as one text, for a model.",
		Example:   "  sentinel help format\n  sentinel help --all\n  sentinel help run",
		ValidArgs: Topics,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			switch {
			case all && len(args) > 0:
				return app.NewUsageError("sentinel help: --all takes no topic", "")
			case !all && len(args) == 0:
				return root.Help()
			case !all && !slices.Contains(Topics, args[0]):
				if found, err := mentions(args[0]); err != nil {
					return err
				} else if c, _, unknown := root.Find(args); found != "" && len(args) == 1 && (unknown != nil || c == root) {
					return a.Out.Printf("no topic or command is %q; topics with the word:\n%s", args[0], termtext.Block(found, ""))
				}
				return helpOf(root, args)
			case len(args) > 1:
				return app.NewUsageError(fmt.Sprintf("sentinel help: unexpected argument %q", args[1]), "")
			}
			s, err := a.Scratch(cmd.Context())
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			text, err := a.render(s.Process.Host(), args)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if other, _, err := root.Find(args); err == nil && other != root {
					text += fmt.Sprintf("\n`%s --help` shows the command.\n", other.CommandPath())
				}
			}
			if a.Env.StdoutTerminal {
				text = output.Wrap(text, a.Env.Width())
			}
			return a.Out.Printf("%s\n", termtext.Block(text, ""))
		},
	}
	c.Flags().BoolVar(&all, "all", false, "write all topics as one text")
	root.SetHelpCommand(c)
	return c
}

// helpOf shows the help of a command.
func helpOf(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 || c == root {
		known := slices.Clone(Topics)
		for _, c := range root.Commands() {
			known = append(known, c.Name())
		}
		hint := "topics: " + strings.Join(Topics, ", ") + "; `sentinel --help` lists the commands"
		if near := sentinels.Suggest(args[0], known); len(near) > 0 {
			hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return app.NewUsageError(fmt.Sprintf("sentinel help: unknown topic or command %q", strings.Join(args, " ")), hint)
	}
	return c.Help()
}

// introduction precedes the topics in the text for models.
const introduction = `# Sentinel
Sentinel runs durable loops of steps, written as JSON. This text has all that a definition can contain. Write a definition
to a file, check it with ` + "`sentinel validate FILE`" + ` until it reports nothing, then ` + "`sentinel run FILE`" + `.

`

// render returns a topic, or all of them.
func (a verbs) render(h *host.Host, topics []string) (string, error) {
	src := newSource(h)
	if len(topics) == 1 {
		return src.topic(topics[0])
	}
	src.brief = true
	var b strings.Builder
	b.WriteString(introduction)
	for i, name := range Topics {
		text, err := src.topic(name)
		if err != nil {
			return "", err
		}
		if text == "" { // for operators
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("#" + text)
	}
	return b.String(), nil
}

// source has what topics are filled with: what the host has.
type source struct {
	host   *host.Host
	schema map[string]any
	brief  bool // of all topics in one text, whose size is limited: without tables for operators
}

// inherited returns the variables of the host that programs of steps get.
func (s *source) inherited() string {
	list := shell.Inherited()
	if s.brief {
		return "`PATH`, `HOME`, `LANG` and their like, folders of toolchains, proxies (`HTTPS_PROXY`), certificates (`SSL_CERT_FILE`), `SSH_AUTH_SOCK`"
	}
	return "`" + strings.Join(list, "` `") + "`"
}

func newSource(h *host.Host) *source {
	s := &source{host: h}
	if err := json.Unmarshal(h.Schema(), &s.schema); err != nil {
		panic("help: " + err.Error()) // cannot happen: this program has encoded it
	}
	return s
}

func (s *source) topic(name string) (string, error) {
	t, err := template.New(name+".md").Funcs(template.FuncMap{
		"keys": s.keys, "stepTypes": s.stepTypes, "commands": s.commands, "triggerKinds": s.triggerKinds, "runWords": runWords, "notifyKinds": func() string { return strings.Join(sentinels.NotifyKinds(), " ") },
		"triggerOptions": s.triggerOptions, "exitCodes": exitCodes, "retries": retries, "inherited": s.inherited, "full": func() bool { return !s.brief }, "topics": s.topics,
	}).ParseFS(files, path.Join("topics", name+".md"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, nil)
	return b.String(), err
}

// topics lists the topics; in one text only those that it has, which end at notifications.
func (s *source) topics() string {
	list := Topics
	if s.brief {
		list = Topics[:slices.Index(Topics, "notifications")+1]
	}
	return strings.Join(list, ", ")
}

// mentions returns a line for each topic that has a word, with the first line of the topic
// that has it.
func mentions(word string) (string, error) {
	word = strings.ToLower(word)
	var b strings.Builder
	if len(word) < 3 {
		return "", nil
	}
	for _, name := range Topics {
		text, err := files.ReadFile(path.Join("topics", name+".md"))
		if err != nil {
			return "", err
		}
		if strings.Contains(name, word) {
			title, _, _ := strings.Cut(string(text), "\n")
			fmt.Fprintf(&b, "sentinel help %s: %s\n", name, strings.TrimLeft(title, "# "))
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(strings.ToLower(line), word) && !strings.Contains(line, "{{") {
				fmt.Fprintf(&b, "sentinel help %s: %s\n", name, strings.TrimSpace(line))
				break
			}
		}
	}
	return b.String(), nil
}

// unexplained are beginnings of the descriptions of keys that are accepted and of no use in a new
// definition.
var unexplained = []string{"Another name of", "Stored, but not used", "Statistics", "Of an entity of another program"}

// keys lists the properties of an object in the schema: at its root for "", at a path such
// as "$defs.loop", or at that property of the root.
func (s *source) keys(where string) (string, error) {
	at := s.schema
	if where != "" {
		if !strings.HasPrefix(where, "$defs.") {
			where = "properties." + where
		}
		for part := range strings.SplitSeq(where, ".") {
			next, ok := at[part].(map[string]any)
			if !ok { // a field of an object
				properties, _ := at["properties"].(map[string]any)
				if next, ok = properties[part].(map[string]any); !ok {
					return "", fmt.Errorf("the schema has no %q", where)
				}
			}
			at = next
		}
	}
	properties, _ := at["properties"].(map[string]any)
	if len(properties) == 0 {
		return "", fmt.Errorf("the schema has no properties at %q", where)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		text, _ := property["description"].(string)
		if text == "" || slices.ContainsFunc(unexplained, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
			continue
		}
		if enum, ok := property["enum"].([]any); ok && len(enum) <= 12 { // the step types have a list of their own
			var values []string
			for _, v := range enum {
				values = append(values, fmt.Sprint(v))
			}
			text += " (" + strings.Join(values, ", ") + ")"
		}
		fmt.Fprintf(&b, "- `%s`: %s\n", name, text)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// stepTypes lists the step types with their fields and outputs.
func (s *source) stepTypes() string {
	types := s.host.Runtime().Types()
	var b strings.Builder
	for _, t := range types.Types() {
		spec, _ := types.Lookup(t)
		var schema struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		if err := json.Unmarshal(spec.Fields, &schema); err != nil {
			continue
		}
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			if slices.Contains(schema.Required, name) {
				fields = append([]string{name + "*"}, fields...)
				continue
			}
			fields = append(fields, name)
		}
		shape := sentinels.Shape(spec.Output, 2)
		if c, ok := s.host.Commands().Lookup(spec.Command()); ok {
			shape = sentinels.Shape(c.Output(), 1)
		}
		switch schema, other := stepOutput(spec); {
		case shape == "" && schema == nil && other == notDescribed:
		case shape == "" && schema == nil:
			shape, _, _ = strings.Cut(other, ":")
		case shape == "":
			shape = "the values"
		}
		fmt.Fprintf(&b, "- `%s` %s Fields: %s.", t, spec.Summary, strings.Join(fields, " "))
		if shape != "" {
			fmt.Fprintf(&b, " Output: %s", shape)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// commands lists the commands, those that a model may be offered by a pattern, or the
// others, without those that only a person calls.
func (s *source) commands(private bool) string {
	var names []string
	for _, c := range s.host.Commands().List() {
		if c.Private == private && c.Effect != command.Decides {
			names = append(names, c.Name)
		}
	}
	return inFamilies(names)
}

// inFamilies writes names that follow each other and differ only behind their last slash as one: code/{edit,read}.
func inFamilies(names []string) string {
	var words []string
	for i := 0; i < len(names); {
		at := strings.LastIndexByte(names[i], '/') + 1
		var last []string
		for family := names[i][:at]; i < len(names) && strings.HasPrefix(names[i], family) && strings.LastIndexByte(names[i], '/')+1 == at; i++ {
			last = append(last, names[i][at:])
			if at == 0 {
				i++
				break
			}
		}
		word := strings.Join(last, ",")
		if len(last) > 1 {
			word = "{" + word + "}"
		}
		words = append(words, names[i-1][:at]+word)
	}
	return strings.Join(words, " ")
}

// runWords lists the words of events of runs.
func runWords() string { return "`" + strings.Join(sentinels.RunEventWords(), "` `") + "`" }

// triggerKinds lists the kinds of triggers with their own options.
func (s *source) triggerKinds() string {
	kinds := s.host.Runtime().DecodeOptions("").Triggers
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "- `%s` fires %s. `$event`: %s.\n", k.Name, k.Fires, k.Event)
		if k.Field != "" {
			fmt.Fprintf(&b, "  - `%s`: %s; required\n", k.Field, k.Field.Doc())
		}
		for _, o := range k.Options {
			if !common(kinds, o) {
				b.WriteString("  - " + option(o))
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// triggerOptions lists the options that every kind has.
func (s *source) triggerOptions() string {
	kinds := s.host.Runtime().DecodeOptions("").Triggers
	var b strings.Builder
	for _, o := range kinds[0].Options {
		if common(kinds, o) {
			b.WriteString("- " + option(o))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// common reports whether every kind has an option.
func common(kinds []sentinels.TriggerKind, o sentinels.TriggerOption) bool {
	return !slices.ContainsFunc(kinds, func(k sentinels.TriggerKind) bool { return !k.Has(o) })
}

func option(o sentinels.TriggerOption) string {
	text := fmt.Sprintf("`%s`: %s", o.Name, o.Doc)
	if o.Enum != nil {
		text += " (" + strings.Join(o.Enum, ", ") + ")"
	}
	switch {
	case o.Required:
		text += "; required"
	case o.Default != "":
		text += "; default " + o.Default
	}
	return text + "\n"
}

// retries lists what a retry does that sets nothing.
func retries() string {
	var list []string
	other := ""
	for _, d := range retry.Defaults() {
		text := fmt.Sprintf("%d (%s from %s)", d.MaxRetries, d.Backoff, d.Base)
		switch {
		case d.Category == "":
			other = "any other " + text
		case d.Category == retry.ManualReview: // of those that a policy cannot help
		case d.MaxRetries == 0:
			list = append(list, string(d.Category)+" 0")
		default:
			list = append(list, string(d.Category)+" "+text)
		}
	}
	return strings.Join(append(list, other), ", ")
}

// exitCodes lists the exit codes of the program.
func exitCodes() string {
	var b strings.Builder
	for _, c := range app.ExitCodes {
		fmt.Fprintf(&b, "- %d: %s\n", c.Code, c.Meaning)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
