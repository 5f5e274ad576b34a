package sentinels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

const maxName = 64 // bytes of an id, a step id, a variable

// Valid reports whether id is a slug. Such an id is safe as a file name.
func (id ID) Valid() bool {
	for i := 0; i < len(id); i++ {
		c := id[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '-' || c == '_')) {
			return false
		}
	}
	return id != "" && len(id) <= maxName
}

// Slug derives an id from a name: lower case, with "-" for all other characters. The
// id of a name without a usable character is derived from its hash.
func Slug(name string) ID {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' && b.Len() > 0:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= maxName {
			break
		}
	}
	s := strings.TrimRight(b.String(), "-")
	if RunID(s).WellFormed() {
		return ID("s-" + s)
	}
	if s == "" {
		sum := sha256.Sum256([]byte(name))
		return ID("s-" + hex.EncodeToString(sum[:6]))
	}
	return ID(s)
}

// stepID reports whether s can be a step's id. A number alone cannot, because it could
// be mistaken for an address.
func stepID(s string) bool {
	name := "_" + strings.ReplaceAll(s, "-", "_") // may begin with a digit
	return reference.IsName(name) && !strings.HasPrefix(s, "-") && strings.Trim(s, "0123456789") != "" && len(s) <= maxName
}

// variableProblem returns why a step cannot set a variable, "" if it can.
func variableProblem(name string) (message, hint string) {
	switch {
	case strings.HasPrefix(name, "$"):
		return fmt.Sprintf("%q is a reference, not a name", name), fmt.Sprintf("write %q", strings.TrimPrefix(name, "$"))
	case !reference.IsName(name) || len(name) > maxName:
		return fmt.Sprintf("invalid variable name %q", name), "letters, digits and _, at most 64, not starting with a digit"
	case name == "__proto__":
		return fmt.Sprintf("invalid variable name %q", name), ""
	case slices.Contains(Reserved, name) && name != varRAGContext:
		return fmt.Sprintf("%q is reserved", name), "reserved: " + strings.Join(Reserved, ", ")
	}
	return "", ""
}

// varRAGContext is the one reserved variable that a step may set: recipes do, with
// rag/build. The next iteration builds it again.
const varRAGContext = "ragContext"
