package command

import "strings"

// Allowed reports whether a model whose step has the allow-list tools may call
// c. nil allows every public command, an empty list none. An entry is a name
// ("code/read"), a family with all below it ("code/*"), or "*" for every
// public command; a private command must be named by itself or its family.
func Allowed(tools []string, c Command) bool {
	if tools == nil {
		return !c.Private
	}
	for _, pattern := range tools {
		if pattern == c.Name || (pattern == "*" && !c.Private) {
			return true
		}
		if family, ok := strings.CutSuffix(pattern, "/*"); ok && family != "" && strings.HasPrefix(c.Name, family+"/") {
			return true
		}
	}
	return false
}
