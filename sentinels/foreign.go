package sentinels

import (
	"bytes"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

var (
	cronLine = lazyregexp.New(`^(@(reboot|yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9*][0-9*,/A-Za-z-]*(\s+[0-9*][0-9*,/-]*){2}(\s+[0-9A-Za-z*,/-]+){2})\s+[^\s:{}]`)
	yamlLine = lazyregexp.New(`^(---(\s|$)|- \S|["']?[A-Za-z_][\w .-]*["']?:(\s|$))`)
	tomlLine = lazyregexp.New(`^(\[\[?[A-Za-z_"][\w."-]*\]?\]|[\w."-]+\s*=\s*["'\[{\d])`)
)

// assignment is a variable in a crontab.
var assignment = lazyregexp.New(`^[A-Za-z_]\w*\s*=`)

const writeHint = "definitions are JSON: `sentinel init` writes one, `sentinel help format` explains them"

// foreign returns what a text is that is not a definition, for files of other programs that
// people have beside it, and what to do; "" if it is none of them.
func foreign(root *node, text []byte) (what, hint string) {
	if root != nil && root.Kind == '{' {
		nodes, connections := root.Member("nodes"), root.Member("connections")
		if root.Member("steps") == nil && nodes != nil && nodes.Kind == '[' && connections != nil && connections.Kind == '{' {
			return "an n8n workflow", "nothing imports it: write its nodes as steps; " + writeHint
		}
	}
	if first := bytes.TrimSpace(text); len(first) > 0 && (first[0] == '{' || first[0] == '/') {
		return "", "" // JSON, perhaps with mistakes
	}
	if bytes.HasPrefix(text, []byte("#!")) {
		return "a script", `a step of type shell executes it: {"type": "shell", "command": "./SCRIPT"}; ` + writeHint
	}
	keys := map[string]bool{} // that begin a line
	var first string
	cron := false
	for line := range strings.Lines(string(text[:min(len(text), 64<<10)])) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || line[0] == '#' || line[0] == ' ' || line[0] == '\t' {
			continue
		}
		if key, _, ok := strings.Cut(line, ":"); ok {
			keys[strings.Trim(key, `"'`)] = true
		}
		if first == "" || assignment.MatchString(first) {
			first = line
		}
		cron = cron || cronLine.MatchString(line)
	}
	switch {
	case cron && (cronLine.MatchString(first) || assignment.MatchString(first)):
		return "a crontab", "each line becomes a definition: `sentinel init --template schedule` writes one, with a place for the time and the command"
	case !yamlLine.MatchString(first) && tomlLine.MatchString(first):
		return "TOML", writeHint
	case !yamlLine.MatchString(first):
		return "", ""
	case keys["jobs"] && keys["on"]:
		return "a GitHub workflow", "nothing imports it: write the `run` of its steps as steps of type shell; " + writeHint
	case keys["services"] && !keys["steps"]:
		return "a Compose file", writeHint
	case keys["stages"] || keys["script"]:
		return "a GitLab pipeline", writeHint
	}
	return "YAML", writeHint
}
