package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// forms returns the texts under which a secret may appear. Each is at least
// indexLength long.
func forms(secret string) []string {
	out := []string{secret}
	add := func(form string) {
		if len(form) >= MinLength {
			out = append(out, form)
		}
	}
	// A command's result is JSON inside a JSON string, hence twice.
	for _, markup := range []bool{false, true} {
		once := jsonEscape(secret, markup)
		add(once)
		add(jsonEscape(once, markup))
	}
	query, path := url.QueryEscape(secret), url.PathEscape(secret)
	// A blank is + or %20 in a query; a slash in a path may be one of its own.
	for _, form := range []string{query, path, strings.ReplaceAll(query, "+", "%20"), strings.ReplaceAll(path, "%2F", "/")} {
		add(form)
		add(lowerEscapes(form))
	}
	add(html.EscapeString(secret))
	add(strings.ReplaceAll(secret, " ", "+")) // of a form, once its escapes are decoded
	digits := hex.EncodeToString([]byte(secret))
	add(digits)
	add(strings.ToUpper(digits))
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			text, last := base64At(encoding, secret, shift)
			add(text)
			add(text + last)
		}
	}
	// Names of HTTP headers come in lower case, whatever was sent.
	for _, form := range slices.Clone(out) {
		add(strings.ToLower(form))
	}
	return out
}

// base64At returns the characters that depend on the secret alone when shift
// bytes of something else stand before it in the encoded text. last is the character after
// them if the encoded text ends with the secret; it shares its bits with what follows.
func base64At(encoding *base64.Encoding, secret string, shift int) (text, last string) {
	// One byte before spoils the first two characters, two bytes the first three.
	text = encoding.EncodeToString(append(make([]byte, shift), secret...))[[]int{0, 2, 3}[shift]:]
	if (shift+len(secret))%3 != 0 {
		text, last = text[:len(text)-1], text[len(text)-1:]
	}
	return text, last
}

// jsonEscape is text as it stands between the quotes of a JSON string.
func jsonEscape(text string, markup bool) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(markup)
	if encoder.Encode(text) != nil {
		return text
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// lowerEscapes writes percent escapes with lower-case digits, as some clients
// do.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// leaves returns the secret and the parts of it that are secrets by
// themselves. Parts shorter than MinLength are left out.
func leaves(secret string) []string {
	out := []string{secret}
	add := func(part string) {
		if part = strings.TrimSpace(part); len(part) >= MinLength && part != secret {
			out = append(out, part)
		}
	}
	// A key file is often JSON, and its private part is used alone.
	var value any
	if json.Unmarshal([]byte(secret), &value) == nil {
		eachString(value, add)
	}
	for line := range strings.Lines(secret) {
		add(line)
		if key, value, ok := strings.Cut(line, "="); ok && !strings.ContainsAny(strings.TrimSpace(key), " \t:/?&") {
			add(strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	if u, err := url.Parse(secret); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok {
			add(password)
		}
	}
	return out
}

// eachString visits every string value in decoded JSON.
func eachString(value any, visit func(string)) {
	switch v := value.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			eachString(item, visit)
		}
	case map[string]any:
		for _, item := range v {
			eachString(item, visit)
		}
	}
}
