package validation

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
	"inbox/*":                   `"sentinel/list" with status waiting has what waits for a decision`,
	"workspace/*":               `use "code/git", or a step of type shell with git worktree`,
	"health-check":              `use a step of type shell, or GET /v1/health of the server`,
	"runtime/*":                 `GET /metrics of the server has the metrics`,
	"screenshot":                `use a step of type shell with a browser`,
	"escalate/*":                `use a step of type approve, or one of type emit and a sentinel with a trigger on the event`,
	"cleanup/*":                 `old runs are removed as the settings "retention" say`,
	"config/*":                  `settings are of the host: sentinel config`,
}
