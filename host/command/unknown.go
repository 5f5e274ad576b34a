package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// laterCommands are commands of the later documents of the original system that do not
// exist here, with what to use instead.
var laterCommands = map[string]string{
	"run/execute":               `use "sentinel/run"`,
	"sentinel/execute":          `use "sentinel/run"`,
	"sentinel/pipeline":         `use "sentinel/run", which waits for the end, or a step of type sentinel`,
	"sentinel/cancel":           `use "sentinel/stop"`,
	"sentinel/list-checkpoints": `use "sentinel/trace"; every step is a checkpoint, and "sentinel/fork" begins at one`,
	"sentinel/extend-budget":    `use "sentinel/resume" with maxIterations, timeoutMs or budget`,
	"sentinel/approve":          `use "sentinel/decide"`,
	"sentinel/escalate":         `use a step of type approve, or one of type emit and a sentinel with a trigger on the event`,
	"sentinel/cleanup":          `old runs are removed as the settings "retention" say`,
	"sentinel/config":           `settings are of the host: sentinel config`,
	"sentinel/coding-agent":     `use a step of type llm with "tools": ["code/*"]`,
	"sentinel/web-research":     `use a step of type shell with curl, and one of type llm`,
	"sentinel/logs/list":        `use "logs/list"`,
	"sentinel/logs/read":        `use "logs/read"`,
	"sentinel/logs/tail":        `use "logs/tail"`,
	"sentinel/logs/search":      `use "logs/search"`,
	"genome/*":                  `models are named in "model"; training is outside of this system`,
	"inbox/peek":                `use "inbox/list"`,
	"workspace/*":               `use "worktree/add", "worktree/list" and "worktree/remove"`,
	"git/*":                     `use "code/git", whose "operation" is the word behind git`,
	"health-check":              `use a step of type shell, or GET /v1/health of the server`,
	"runtime/*":                 `GET /metrics of the server has the metrics`,
	"screenshot":                `use a step of type shell with a browser`,
	"escalate/*":                `use a step of type approve, or one of type emit and a sentinel with a trigger on the event`,
	"cleanup/*":                 `old runs are removed as the settings "retention" say`,
	"config/*":                  `settings are of the host: sentinel config`,
}

// ProgramHint says how a program is executed by a command.
const ProgramHint = `"code/shell/execute" executes a program`

// UnknownHint says what was probably meant by the name of a command that does not exist. names are the
// commands that do, and program is what it says of a name that looks like a shell line or a program.
func UnknownHint(name string, names []string, program string) string {
	family, _, _ := strings.Cut(name, "/")
	near := Nearest(name, names)
	switch {
	case laterCommands[name] != "":
		return laterCommands[name]
	case laterCommands[family+"/*"] != "":
		return laterCommands[family+"/*"]
	case strings.ContainsAny(name, " \t|&;<>$()=") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/"):
		return program
	case near != "":
		return fmt.Sprintf("did you mean %q?", near)
	case !strings.Contains(name, "/"): // as the name of a program
		return program
	}
	return Known(name, names)
}

// Known lists those of names that are in the family of a name, or else the families.
func Known(name string, names []string) string {
	commands, families := Like(name, names)
	if len(commands) > 0 {
		return "known: " + strings.Join(commands, ", ")
	}
	return "commands begin with " + strings.Join(families, "/, ") + "/; `sentinel exec --list` lists them"
}

// Like returns those of names that are in the family of a name, or else the families.
func Like(name string, names []string) (commands, families []string) {
	own, _, _ := strings.Cut(name, "/")
	for _, n := range names {
		family, _, ok := strings.Cut(n, "/")
		switch {
		case ok && family == own:
			commands = append(commands, n)
		case ok && !slices.Contains(families, family):
			families = append(families, family)
		}
	}
	return commands, families
}

// Nearest returns that of names which was most likely meant, "" for none. It also finds a command by its
// verb alone: "read" is code/read.
func Nearest(want string, names []string) string {
	i := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "/"+want) })
	if i >= 0 && want != "" {
		return names[i]
	}
	return nearest(want, names)
}

// nearest returns the candidate that want was most likely meant to be, or "".
func nearest(want string, candidates []string) string {
	if near := sentinels.Suggest(want, candidates); want != "" && len(near) > 0 {
		return near[0]
	}
	return ""
}
