package rag

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// maxWords limits the words of a query.
const maxWords = 24

// stopWords occur in many questions and do not distinguish files.
var stopWords = strings.Fields(`the and for with that this from into are was were has have had not but you your our its all any can could should
	would will does did done how what when where which who why use uses using make please about there then than them they find search show tell
	add fix file files code function line lines error errors`)

// queryWords returns the words of a question, in lower case, each once, in their
// order. A name in camelCase or snake_case is a word, and so are its parts.
func queryWords(query string) []string {
	var words []string
	add := func(w string) {
		w = strings.ToLower(strings.Trim(w, "_"))
		if len(w) >= 3 && len(w) <= 64 && len(words) < maxWords && !slices.Contains(stopWords, w) && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	for _, token := range strings.FieldsFunc(query, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		add(token)
		if inner := nameParts(token); len(inner) > 1 {
			for _, p := range inner {
				add(p)
			}
		}
	}
	return words
}

// nameParts splits a name at underscores and before capital letters.
func nameParts(name string) []string {
	var out []string
	var part []rune
	end := func() {
		if len(part) > 0 {
			out = append(out, string(part))
		}
		part = part[:0]
	}
	small := false // the previous rune was a lower-case letter or a digit
	for _, r := range name {
		if r == '_' || small && unicode.IsUpper(r) {
			end()
		}
		if r != '_' {
			part = append(part, r)
		}
		small = unicode.IsLower(r) || unicode.IsDigit(r)
	}
	end()
	return out
}

// queryVariables are the variables whose text describes the purpose of a run.
var queryVariables = []string{"query", "question", "task", "goal", "topic", "feature", "issue", "bug", "request", "title", "description"}

// queryOf returns the query of a request, or the text of its variables instead.
func queryOf(req Request) string {
	if req.Query != "" {
		return req.Query
	}
	var asked []string
	for _, name := range queryVariables {
		var text string
		if json.Unmarshal(req.Variables[name], &text) == nil && text != "" {
			asked = append(asked, text)
		}
	}
	return strings.Join(asked, "\n")
}

// maxMentions limits the text of each variable that is searched for file names, in
// bytes at its end, where compilers report what failed.
const maxMentions = 64 << 10

// mention matches a possible file name, with or without a line: "a/b.go:12",
// "src/x.ts(3,7)".
var mention = lazyregexp.New(`[\p{L}\p{N}_@+.\-/\\]*[\p{L}\p{N}_\-]\.[A-Za-z][A-Za-z0-9]{0,9}(?:[:(](\d{1,7}))?`)

// mentions returns the files that variables name, with the line that is named first,
// or 0. It ignores the variable of the context itself, which names the files of the
// iteration before.
func mentions(variables map[string]json.RawMessage, items []item, base string) map[string]int {
	byName := map[string][]string{}
	for _, it := range items {
		if !it.folder {
			byName[path.Base(it.path)] = append(byName[path.Base(it.path)], it.path)
		}
	}
	found := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if name == "ragContext" {
			continue
		}
		var b strings.Builder
		var value any
		if json.Unmarshal(variables[name], &value) != nil {
			continue
		}
		collectText(value, &b, 0)
		text := b.String()
		text = text[max(0, len(text)-maxMentions):]
		for _, m := range mention.FindAllStringSubmatch(text, 2000) {
			file := strings.TrimRight(strings.TrimSuffix(m[0], m[1]), ":(")
			line, _ := strconv.Atoi(m[1]) // absent is 0
			for _, p := range resolveMention(file, byName, base) {
				if found[p] == 0 {
					found[p] = line
				}
			}
		}
	}
	return found
}

// resolveMention returns the files whose path ends with a mentioned name. A name that
// fits more than three files is ambiguous and fits none.
func resolveMention(file string, byName map[string][]string, base string) []string {
	file = strings.ReplaceAll(file, `\`, "/")
	if rest, ok := strings.CutPrefix(file, strings.ReplaceAll(base, `\`, "/")+"/"); ok {
		file = rest
	}
	file = path.Clean("/" + file)[1:]
	var fit []string
	for _, p := range byName[path.Base(file)] {
		if p == file {
			return []string{p}
		}
		// The path of a compiler can be relative to a folder of the workspace, or
		// begin outside of the workspace.
		if strings.HasSuffix(p, "/"+file) || strings.HasSuffix(file, "/"+p) {
			fit = append(fit, p)
		}
	}
	if len(fit) > 3 {
		return nil
	}
	return fit
}

// collectText writes the strings in a value, each on a line.
func collectText(value any, b *strings.Builder, depth int) {
	if depth > 32 || b.Len() > 16*maxMentions {
		return
	}
	switch v := value.(type) {
	case string:
		b.WriteString(v)
		b.WriteByte('\n')
	case []any:
		for _, e := range v {
			collectText(e, b, depth+1)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			collectText(v[k], b, depth+1)
		}
	}
}
