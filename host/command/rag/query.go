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

// maxWords bounds the words of a query that count.
const maxWords = 24

// dullWords are in every question and so tell files apart badly.
var dullWords = strings.Fields(`the and for with that this from into are was were has have had not but you your our its all any can could should
	would will does did done how what when where which who why use uses using make please about there then than them they find search show tell
	add fix file files code function line lines error errors`)

// queryWords splits a question into the words to look for, lower case, each
// once, in their order. A name in camelCase or snake_case counts as a whole
// and by its parts.
func queryWords(query string) []string {
	var words []string
	add := func(w string) {
		w = strings.ToLower(strings.Trim(w, "_"))
		if len(w) >= 3 && len(w) <= 64 && len(words) < maxWords && !slices.Contains(dullWords, w) && !slices.Contains(words, w) {
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

// nameParts splits a name at underscores and where capitals begin.
func nameParts(name string) []string {
	var out []string
	var part []rune
	end := func() {
		if len(part) > 0 {
			out = append(out, string(part))
		}
		part = part[:0]
	}
	small := false // the rune before was a small letter or a digit
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

// askingVariables are those whose text says what a run is about.
var askingVariables = []string{"query", "question", "task", "goal", "topic", "feature", "issue", "bug", "request", "title", "description"}

// queryOf returns the request's query, or what its variables say instead.
func queryOf(req Request) string {
	if req.Query != "" {
		return req.Query
	}
	var asked []string
	for _, name := range askingVariables {
		var text string
		if json.Unmarshal(req.Variables[name], &text) == nil && text != "" {
			asked = append(asked, text)
		}
	}
	return strings.Join(asked, "\n")
}

// maxMentions bounds the text of variables that is searched for file names, in
// bytes of each variable; its end counts, where a compiler says what failed.
const maxMentions = 64 << 10

// mention finds what may be a file, with a line behind it or not: "a/b.go:12",
// "src/x.ts(3,7)".
var mention = lazyregexp.New(`[\p{L}\p{N}_@+.\-/\\]*[\p{L}\p{N}_\-]\.[A-Za-z][A-Za-z0-9]{0,9}(?:[:(](\d{1,7}))?`)

// mentions returns the files that variables name, with the line that was named
// first, or 0. The context itself does not count: it would feed on itself.
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
			for _, p := range meant(file, byName, base) {
				if found[p] == 0 {
					found[p] = line
				}
			}
		}
	}
	return found
}

// meant returns the files whose path ends like the mention; a mention that
// fits more than three is too vague to mean any.
func meant(file string, byName map[string][]string, base string) []string {
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
		// Either may have folders the other lacks: a compiler's path can be
		// relative to a folder inside, or lead here from outside.
		if strings.HasSuffix(p, "/"+file) || strings.HasSuffix(file, "/"+p) {
			fit = append(fit, p)
		}
	}
	if len(fit) > 3 {
		return nil
	}
	return fit
}

// collectText joins the strings in a value, a line each.
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
