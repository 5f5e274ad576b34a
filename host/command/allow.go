package command

import (
	"path"
	"strings"
)

// Allowed reports whether a model whose step has the allow-list tools may call
// c. nil allows every public command, an empty list none. An entry is a name
// ("code/read"), a family with all below it ("code/*"), or "*" for all. A
// private command must be named by itself or by its own family: "code/*" does
// not give a model the shell, "code/shell/*" does.
func Allowed(tools []string, c Command) bool {
	if tools == nil {
		return !c.Private
	}
	for _, pattern := range tools {
		if pattern == c.Name || (pattern == "*" && !c.Private) {
			return true
		}
		family, ok := strings.CutSuffix(pattern, "/*")
		if !ok || family == "" || !strings.HasPrefix(c.Name, family+"/") {
			continue
		}
		if !c.Private || path.Dir(c.Name) == family {
			return true
		}
	}
	return false
}
