package step

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// ConditionVars returns the variables of a condition. A variable that has no value yet,
// such as $retry in a first attempt, is left out, so that $retry.attempts is undefined.
func ConditionVars(lookup reference.Lookup) cond.Vars {
	return func(name string) (json.RawMessage, bool) {
		v, ok := lookup(name)
		return v, ok && len(v) > 0
	}
}

// maxConditionText is the maximum size in bytes of a condition's value in the journal.
const maxConditionText = 200

// ConditionText returns the value of a condition for display, as JSON: the string
// "false", which is true, is shown with quotes.
func (s *Services) ConditionText(v cond.Value) string {
	if v.JSON == nil {
		return "undefined"
	}
	return textcut.Mark(string(s.Redact.JSON(v.JSON)), maxConditionText+len(textcut.Ellipsis))
}

// maxReads is the number of paths that are recorded of an expression.
const maxReads = 16

// pathPattern matches a variable with a path of names and indexes. An open bracket behind
// it makes the last name a method.
var pathPattern = lazyregexp.New(`\$([A-Za-z_]\w*)((?:\s*\??\.\s*[A-Za-z_]\w*|\s*(?:\?\.)?\[\d+\])*)(\s*(?:\?\.)?\()?`)

// ReadsIn returns for display what an expression reads: paths of variables as written,
// and their values as JSON, shortened; "undefined" without a value.
func (s *Services) ReadsIn(source string, vars cond.Vars) map[string]string {
	var reads map[string]string
	for _, m := range pathPattern.FindAllStringSubmatch(source, -1) {
		name, path := readPath(m)
		key := "$" + name + path
		if _, has := reads[key]; has || len(reads) == maxReads {
			continue
		}
		text := "undefined"
		if v, ok := vars(name); ok {
			if part, ok := reference.Path(v, path); ok {
				text = s.ConditionText(cond.Value{JSON: part})
			}
		}
		if reads == nil {
			reads = map[string]string{}
		}
		reads[key] = text
	}
	return reads
}

// readPath returns what a match of pathPattern reads: a variable and a path, without the name of a method.
func readPath(match []string) (name, path string) {
	name, path = match[1], strings.Join(strings.Fields(match[2]), "")
	if match[3] != "" { // a method
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
		path = strings.TrimSuffix(path, "?")
	}
	return name, path
}

// missingIn returns the first path that an expression reads, that has no value and no other one behind ??; "" without
// one.
func missingIn(source string, vars cond.Vars) string {
	for _, at := range pathPattern.FindAllStringSubmatchIndex(source, -1) {
		if strings.HasPrefix(strings.TrimLeft(source[at[1]:], " \t\r\n)"), "??") {
			continue
		}
		match := pathPattern.FindStringSubmatch(source[at[0]:at[1]])
		name, path := readPath(match)
		required := strings.ReplaceAll(strings.ReplaceAll(path, "?.[", "["), "?.", ".")
		if v, ok := vars(name); ok {
			if _, ok := reference.Path(v, required); ok {
				continue
			}
		}
		return "$" + name + path
	}
	return ""
}

// cutList returns the reference in field each of a loop to a list in a result that says that it was cut; "" if there is
// none, or if the definition reads of the result whether there is more.
func (a *attempt) cutList() string {
	raw := a.step.Fields["each"]
	refs := reference.In(raw)
	if a.step.Type != loopType || len(refs) != 1 || !isString(raw) {
		return ""
	}
	at := strings.LastIndexByte(refs[0].Path, '.')
	if at < 0 {
		return ""
	}
	above := refs[0].Name + refs[0].Path[:at]
	truncated, err := json.Marshal("$" + above + ".truncated")
	if err != nil {
		return ""
	}
	value, _, err := reference.Resolve(truncated, a.run.Lookup(a.sc, a.retry))
	if err != nil || string(value) != "true" {
		return ""
	}
	whole, err := json.Marshal(a.run.Definition())
	if err != nil || bytes.Contains(whole, []byte(above+".truncated")) || bytes.Contains(whole, []byte(above+".next")) {
		return ""
	}
	return refs[0].String()
}
