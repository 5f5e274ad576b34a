package validation_test

import (
	"maps"
	"slices"
	"strings"
)

// A place is a value within a document, and how to replace it.
type place struct {
	path   string
	value  any
	parent object // nil for an item of a list
	key    string
	set    func(v any)
}

// places lists all values below v.
func places(v any, path string, out *[]place) {
	switch v := v.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			*out = append(*out, place{path + "." + key, v[key], v, key, func(to any) { v[key] = to }})
			places(v[key], path+"."+key, out)
		}
	case []any:
		for i := range v {
			*out = append(*out, place{path + "[]", v[i], nil, "", func(to any) { v[i] = to }})
			places(v[i], path+"[]", out)
		}
	}
}

// foreign are forms of other systems: templates, environments, schedules, YAML.
var foreign = []string{
	"{{x}}", "{{ steps.build.output }}", "${{ env.HOME }}", "${word}", "${steps.0}", "%word%", "<%= word %>", "#{word}", "{word}",
	"$(word)", "`word`", "$.word", "$[0]", "$word.nope", "$worde", "$nothing.at.all", "$steps.nope.output", "$event.x", "@daily", "every 5 minutes", "every 5m",
	"* * * * *", "5m", "1h30m", "yes", "no", "on", "null", "~", "True", "- a\n- b", "key: value", "!!str 5", "0x10", "1e3", " ", "", "$", "$$", "'", `"`, "a &&", "x =>",
	"function() {}", "await x", "Date.now()", "Math.random()", "import x", "../../etc/passwd", "/absolute", "a:*:**", "[", "(", "**/", "$word $word.length $list[9]",
}

// mutate makes one change somewhere in d, and says which.
func mutate(d object, c *choices) string {
	var all []place
	places(d, "", &all)
	p := all[c.n(len(all))]
	switch c.n(8) {
	case 0: // another type
		v := []any{5, -1.5, true, nil, "text", []any{}, []any{"a"}, object{}, object{"a": 1}, "$word", "$list"}[c.n(11)]
		p.set(v)
		return "type of " + p.path
	case 1: // a misspelt key
		if p.parent != nil {
			delete(p.parent, p.key)
			key := misspelt(p.key, c)
			p.parent[key] = p.value
			return "key " + p.path + " as " + key
		}
	case 2: // a key that is missing
		if p.parent != nil {
			delete(p.parent, p.key)
			return "without " + p.path
		}
	case 3: // one more key
		if o, ok := p.value.(object); ok {
			key := c.one("timeout", "retries", "if", "when", "args", "run", "uses", "env", "type", "name", "steps", "a")
			o[key] = []any{"text", 5, true, object{}, "$word"}[c.n(5)]
			return "one more key " + p.path + "." + key
		}
	case 4, 5: // another language
		if s, ok := p.value.(string); ok {
			text := foreign[c.n(len(foreign))]
			if c.often(3) {
				text = s + " " + text
			}
			p.set(text)
			return "foreign " + p.path + ": " + text
		}
	case 6: // a misspelt word
		if s, ok := p.value.(string); ok {
			p.set(misspelt(s, c))
			return "misspelt " + p.path
		}
	case 7: // a number
		if _, ok := p.value.(string); !ok {
			p.set([]any{0, -1, 1.5, 1e15, 1e308, "5", "1e3"}[c.n(7)])
			return "number " + p.path
		}
	}
	p.set(foreign[c.n(len(foreign))])
	return "foreign " + p.path
}

// misspelt returns a text with one character less, more, changed, or two exchanged.
func misspelt(s string, c *choices) string {
	r := []rune(s)
	if len(r) < 2 {
		return s + "x"
	}
	i := c.n(len(r) - 1)
	switch c.n(4) {
	case 0:
		return string(slices.Delete(r, i, i+1))
	case 1:
		return string(slices.Insert(r, i+1, r[i]))
	case 2:
		if upper := strings.ToUpper(s[:1]) + s[1:]; upper != s {
			return upper
		}
	}
	if r[i] == r[i+1] {
		return s + "s"
	}
	r[i], r[i+1] = r[i+1], r[i]
	return string(r)
}
