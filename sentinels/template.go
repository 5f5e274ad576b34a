package sentinels

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

//go:embed template.jsonc
var starter string

// Template returns the file that `sentinel init` writes: a commented definition with
// the given name.
func Template(name string) ([]byte, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return nil, fmt.Errorf("template: the name is empty")
	}
	if strings.ContainsAny(name, "\n\r") {
		return nil, fmt.Errorf("template %q: the name has more than one line", name)
	}
	text := strings.Replace(starter, `"NAME"`, string(strictjson.AppendString(nil, name)), 1)
	return []byte(strings.Replace(text, `"ID"`, string(strictjson.AppendString(nil, string(Slug(name)))), 1)), nil
}
