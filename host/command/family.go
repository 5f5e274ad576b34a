package command

import "slices"

// families are the first parts of the names of commands that are part of the program, or
// will be. No plugin provides a command that begins with one of them.
var families = []string{
	"ai", "audit", "chat", "checkpoint", "code", "collaboration", "config", "data", "events", "forge", "fs", "fs_list", "fs_read", "fs_write", "git", "http", "inbox", "logs",
	"mcp", "memory", "metrics", "notify", "operator", "plugin", "rag", "run", "runtime", "search_tools", "sentinel", "shell", "skill", "ticket", "verify", "worktree",
}

// BuiltIn reports whether a family of commands is part of the program. What comes before
// the first slash of a command's name is its family.
func BuiltIn(family string) bool { return slices.Contains(families, family) }
