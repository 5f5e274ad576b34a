package definitions

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

//go:embed templates/*.jsonc
var templateFiles embed.FS

// A template is what `sentinel init` can write: a file here, else a sentinel that is part of
// the program, or all of several templates.
type template struct {
	name, summary string
	all           []string // names of templates; each is written under its own name
}

// templates are the templates, the default first.
var templates = []template{
	{name: "hello", summary: "count to a goal; needs nothing but a shell"},
	{name: "build-fix", summary: "build and test; a model repairs what fails"},
	{name: "watch-files", summary: "run a line when files change"},
	{name: "schedule", summary: "run a line at planned times"},
	{name: "review", summary: "a model reviews the changes of the repository"},
	{name: "research", summary: "a model answers questions about the project"},
	{name: "agent", summary: "a model works on a task with tools, within limits"},
	{name: "safe-deploy", summary: "test, ask a person, deploy, check, go back"},
	{name: "do", summary: "what `sentinel do` executes: a model works on a task in a folder, with checkpoints and checks"},
	{name: "operator", summary: "a model plans a task, executes it, reviews it and plans again"},
	{name: "tickets", summary: "forge-worker, reviewer and notify: work on tickets from the queue to its approval", all: []string{"forge-worker", "reviewer", "notify"}},
	{name: "forge-worker", summary: "a model works on tickets; verified work becomes a branch and a pull request"},
	{name: "notify", summary: "a message when a ticket or run waits for a person, or a run has failed"},
	{name: "reviewer", summary: "a model reviews verified work on tickets; it goes to its next gate, or back with feedback"},
}

// templateNames returns the names of the templates.
func templateNames() []string {
	names := make([]string, len(templates))
	for i, t := range templates {
		names[i] = t.name
	}
	return names
}

// fromTemplate returns the text of a template for a sentinel with the given name.
func fromTemplate(template, name string) ([]byte, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return nil, fmt.Errorf("the name is empty")
	}
	if strings.ContainsAny(name, "\n\r") {
		return nil, fmt.Errorf("the name %q has more than one line", name)
	}
	own := map[string]string{`"NAME"`: name, `"ID"`: string(sentinels.Slug(name)), `"SCHEMA"`: sentinels.SchemaURL}
	text, shipped := sentinels.ShippedText(sentinels.ID(template))
	if shipped && name == template {
		return text, nil
	}
	if shipped { // its first two keys are id and name
		title, _, _ := strings.Cut(string(text[bytes.Index(text, []byte(`"name": `))+len(`"name": `):]), ",\n")
		own = map[string]string{title: name, string(strictjson.AppendString(nil, template)): string(sentinels.Slug(name))}
	} else {
		var err error
		if text, err = templateFiles.ReadFile(path.Join("templates", template+".jsonc")); err != nil {
			return nil, err
		}
	}
	for old, value := range own {
		text = bytes.Replace(text, []byte(old), strictjson.AppendString(nil, value), 1)
	}
	return text, nil
}
