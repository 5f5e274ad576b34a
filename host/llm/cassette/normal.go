package cassette

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// paths writes and reads the place of the workspace in texts.
type paths struct{ roots []string } // the longest first

// newPaths knows a workspace by its path and by the path it really has. An
// empty workspace is never found.
func newPaths(workspace string) paths {
	var p paths
	// The root as a workspace is part of every path, so it cannot be marked.
	if workspace == "" || workspace == "/" {
		return p
	}
	clean := filepath.Clean(workspace)
	p.roots = []string{clean}
	if real, err := filepath.EvalSymlinks(clean); err == nil && real != clean && real != "/" {
		p.roots = append(p.roots, real)
		if len(real) > len(clean) {
			p.roots[0], p.roots[1] = real, clean
		}
	}
	return p
}

var dollars = lazyregexp.New(`\$+WORKSPACE`)

const mark = "$WORKSPACE"

// hide replaces the workspace's path by $WORKSPACE and doubles the dollars of
// what already looks so.
func (p paths) hide(text string) string {
	text = dollars.ReplaceAllStringFunc(text, func(found string) string {
		return strings.Repeat("$", len(found)-len("WORKSPACE")) + found
	})
	for _, root := range p.roots {
		text = replacePath(text, root)
	}
	return text
}

// show undoes hide. A path comes back only if the workspace is known.
func (p paths) show(text string) string {
	return dollars.ReplaceAllStringFunc(text, func(found string) string {
		n := len(found) - len("WORKSPACE")
		literal := strings.Repeat("$", n/2)
		if n%2 == 0 {
			return literal + "WORKSPACE"
		}
		if len(p.roots) == 0 {
			return literal + mark
		}
		return literal + p.root()
	})
}

// root is the path a text gets: the real one, which commands report.
func (p paths) root() string { return p.roots[0] }

// replacePath replaces root where it is a path of its own or the start of one,
// not where it is part of a longer name.
func replacePath(text, root string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, root)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		after := text[i+len(root):]
		whole := (i == 0 || !inName(text[i-1])) && !continues(after)
		b.WriteString(text[:i])
		if whole {
			b.WriteString(mark)
		} else {
			b.WriteString(root)
		}
		text = after
	}
}

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == '$'
}

// continues reports whether the name of a path's last part goes on. A dot at
// the end of a sentence does not go on.
func continues(after string) bool {
	if after == "" {
		return false
	}
	if after[0] == '.' {
		return len(after) > 1 && inName(after[1]) && after[1] != '.'
	}
	return inName(after[0])
}

// What differs from run to run, in the order of replacement.
var varying = []struct {
	pattern *lazyregexp.Regexp
	name    string
}{
	{lazyregexp.New(`\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?`), "$$TIME"},
	{lazyregexp.New(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "$$UUID"},
	// The host derives the id of a shell execution from the run's.
	{lazyregexp.New(`\b(executionId\W{1,8})[0-9a-f]{16}\b`), "${1}$$EXECUTION"},
	{lazyregexp.New(`\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|m|h|(?:nano|micro|milli)?seconds?|secs?|minutes?|mins?|hours?)\b`), "$$DURATION"},
}

// steady replaces in a text what may differ from run to run.
func steady(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.name)
	}
	return text
}

// milliseconds matches numbers of that unit in JSON that is inside a text.
var milliseconds = lazyregexp.New(`("[A-Za-z]*Ms"\s*:\s*)\d+(?:\.\d+)?`)

// key is the hash of a request that is already hidden.
func key(turn sentinels.Turn) string {
	value, err := generic(turn)
	if err != nil {
		return ""
	}
	// Results of commands are JSON inside a text, so milliseconds are looked for
	// in texts too.
	value = eachText(value, func(text string) string {
		return steady(milliseconds.ReplaceAllString(text, "${1}0"))
	})
	raw, err := json.Marshal(zeroMs(value))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// zeroMs sets numbers under a name that ends in Ms to 0.
func zeroMs(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = zeroMs(v[i])
		}
	case map[string]any:
		for name, item := range v {
			if _, number := item.(json.Number); number && strings.HasSuffix(name, "Ms") {
				v[name] = 0
			} else {
				v[name] = zeroMs(item)
			}
		}
	}
	return v
}

// generic is v as maps, slices and json.Number. Marshalled again it is
// canonical: names sorted, no spaces.
func generic(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var out any
	err = decoder.Decode(&out)
	return out, err
}

// eachText applies f to every string value.
func eachText(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = eachText(v[i], f)
		}
	case map[string]any:
		for name := range v {
			v[name] = eachText(v[name], f)
		}
	}
	return v
}

// hide takes secrets out of *v, wherever they are, and then the workspace's
// path out of its texts.
func hide[T any](v *T, secrets *redact.Redactor, p paths) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var out T
	if err := json.Unmarshal(secrets.JSON(raw), &out); err != nil {
		return err
	}
	if err := mapTexts(&out, p.hide); err != nil {
		return err
	}
	*v = out
	return nil
}

// mapTexts applies f to every string inside *v, through JSON.
func mapTexts[T any](v *T, f func(string) string) error {
	value, err := generic(v)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(eachText(value, f))
	if err != nil {
		return err
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	*v = out
	return nil
}
