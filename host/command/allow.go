package command

import (
	"path"
	"slices"
	"strings"
)

// Allowed reports whether a model whose step has the allow-list tools may call
// c. nil allows every public command, an empty list none. An entry is a name
// ("code/read"), a family with all below it ("code/*"), or "*" for all.
//
// A private command must be named by itself or by its own family: "*" does not give a model
// "sentinel/list", "sentinel/*" does. A command that is ByName, as all are that do more than
// change something, must be named by itself: "sentinel/*" does not give a model sentinel/run or
// sentinel/create, "code/*" not code/verify or code/git, nor "code/shell/*" code/shell/execute.
func Allowed(tools []string, c Command) bool {
	if tools == nil {
		return !c.Private && !c.ByName
	}
	for _, pattern := range tools {
		switch {
		case pattern == c.Name:
			return true
		case c.ByName || !matches(pattern, c.Name):
		case !c.Private || pattern == path.Dir(c.Name)+"/*":
			return true
		}
	}
	return false
}

// matches reports whether a pattern, "*" or "family/*", holds a name.
func matches(pattern, name string) bool {
	family, ok := strings.CutSuffix(pattern, "/*")
	return pattern == "*" || ok && family != "" && strings.HasPrefix(name, family+"/")
}

// matchedByPattern reports whether one of the patterns holds a name.
func matchedByPattern(tools []string, name string) bool {
	return slices.ContainsFunc(tools, func(pattern string) bool { return matches(pattern, name) })
}
