package sentinels

import (
	"bytes"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

var (
	cronLine = lazyregexp.New(`^(@(reboot|yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9*][0-9*,/A-Za-z-]*(\s+[0-9*][0-9*,/-]*){2}(\s+[0-9A-Za-z*,/-]+){2})\s+[^\s:{}]`)
	yamlLine = lazyregexp.New(`^(---(\s|$)|- \S|["']?[A-Za-z_][\w .-]*["']?:(\s|$))`)
	tomlLine = lazyregexp.New(`^(\[\[?[A-Za-z_"][\w."-]*\]?\]|[\w."-]+\s*=\s*["'\[{\d])`)
)

// assignment is a variable in a crontab.
var assignment = lazyregexp.New(`^[A-Za-z_]\w*\s*=`)

const writeHint = "definitions are JSON: `sentinel init` writes one, `sentinel help format` explains them"

var (
	hashComment = lazyregexp.New(`^#+ ?([^\n]*)`)
	singleText  = lazyregexp.New(`^'((?:[^'\\\n]|\\.)*)'`)
	bareKey     = lazyregexp.New(`^([A-Za-z_$][\w$-]*)\s*:`)
	bareWord    = lazyregexp.New(`^[A-Za-z_][\w.-]*`)
)

// literal returns the JSON of a value of another language, "" for any other word.
func literal(word string) string {
	switch word {
	case "True", "yes", "on":
		return "true"
	case "False", "no", "off":
		return "false"
	case "None", "NULL", "nil", "undefined":
		return "null"
	}
	return ""
}

// notJSON returns the message and the hint for a syntax error at an offset, for what other
// languages have there; the given message and no hint for everything else.
func notJSON(text []byte, offset int, message string) (what, hint string) {
	rest := string(text[min(offset, len(text)):])
	if m := hashComment.FindStringSubmatch(rest); m != nil {
		return "a comment begins with // and not with #", "write // " + textcut.Mark(strings.TrimSpace(m[1]), 80)
	}
	if m := singleText.FindStringSubmatch(rest); m != nil {
		return "a text stands in double quotes", "write " + textcut.Mark(quoted(strings.ReplaceAll(m[1], `\'`, `'`)), 80)
	}
	if len(rest) > 0 && (rest[0] == '\n' || rest[0] == '\r') && strings.HasSuffix(message, "in string (expecting non-control character)") {
		return "a text ends in the line in which it begins", `write \n for a line break: ` + brokenText(text, offset)
	}
	if len(rest) > 0 && rest[0] == '\t' && strings.HasSuffix(message, "in string (expecting non-control character)") {
		return "a text contains no tab", `write \t`
	}
	for offset > 0 && offset <= len(text) && bareByte(text[offset-1]) {
		offset-- // an error is often within a word
	}
	rest = string(text[min(offset, len(text)):])
	if m := bareKey.FindStringSubmatch(rest); m != nil {
		return "a key stands in double quotes", "write " + textcut.Mark(quoted(m[1]), 80) + ":"
	}
	if at := bareWord.FindStringIndex(rest); at != nil {
		word := rest[:at[1]]
		if value := literal(word); value != "" {
			return word + " is not a JSON value", "write " + value
		}
		return "a text stands in double quotes", "write " + textcut.Mark(quoted(word), 80)
	}
	return message, ""
}

// bareByte reports whether a byte can be in a word without quotes.
func bareByte(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// brokenText returns the text around a line break at an offset, in one line, as JSON.
func brokenText(text []byte, offset int) string {
	start := bytes.LastIndexByte(text[:offset], '"')
	end := offset
	for end < len(text) && text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	inner := strings.ReplaceAll(string(text[start+1:min(end, len(text))]), "\r\n", "\n")
	return textcut.Mark(`"`+strings.ReplaceAll(inner, "\n", `\n`)+`"`, 200)
}

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
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("```")) {
		return "a Markdown fence", "leave out the lines that begin with ```"
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
		return "a crontab", "each line becomes a definition: `sentinel init --template schedule` writes one, `sentinel help cron` explains the times"
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
