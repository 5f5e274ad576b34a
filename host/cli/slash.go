package cli

import (
	"slices"
	"strings"
)

// valueFlags are the global flags whose value may be an argument of its own.
var valueFlags = []string{"-o", "--output", "--workspace", "--state", "--plugins", "--trust", "--as"}

// asExec accepts a command by its own name: `sentinel sentinel/step/list --sentinelId=abc` is exec of that command. No
// verb has a slash in it, so nothing else can be meant.
func asExec(args []string) []string {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case slices.Contains(valueFlags, arg):
			i++
		case strings.HasPrefix(arg, "-"):
		case strings.Contains(arg, "/"):
			return append([]string{"exec"}, args...)
		default:
			return args
		}
	}
	return args
}
