package definitions

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

//go:embed templates/*.jsonc
var templateFiles embed.FS

// templates are what `sentinel init` can write, the default first.
var templates = []struct{ name, summary string }{
	{"hello", "count to a goal; needs nothing but a shell"},
	{"build-fix", "build and test; a model repairs what fails"},
	{"watch-files", "run a line when files change"},
	{"schedule", "run a line at planned times"},
	{"review", "a model reviews the changes of the repository"},
	{"research", "a model answers questions about the project"},
	{"agent", "a model works on a task with tools, within limits"},
	{"safe-deploy", "test, ask a person, deploy, check, go back"},
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
	text, err := templateFiles.ReadFile(path.Join("templates", template+".jsonc"))
	if err != nil {
		return nil, err
	}
	out := strings.Replace(string(text), `"NAME"`, string(strictjson.AppendString(nil, name)), 1)
	return []byte(strings.Replace(out, `"ID"`, string(strictjson.AppendString(nil, string(sentinels.Slug(name)))), 1)), nil
}
