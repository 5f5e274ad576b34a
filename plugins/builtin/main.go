// Command builtin is the plugin with all built-in step types: one module, so that
// one compilation and one pool of instances serve them all.
//
// Command plugins/internal/build builds it, and package plugins embeds it.
package main

import (
	"github.com/sentinel-runtime/sentinel/plugins/approve"
	"github.com/sentinel-runtime/sentinel/plugins/command"
	"github.com/sentinel-runtime/sentinel/plugins/condition"
	"github.com/sentinel-runtime/sentinel/plugins/emit"
	"github.com/sentinel-runtime/sentinel/plugins/fail"
	"github.com/sentinel-runtime/sentinel/plugins/group"
	"github.com/sentinel-runtime/sentinel/plugins/http"
	"github.com/sentinel-runtime/sentinel/plugins/llm"
	"github.com/sentinel-runtime/sentinel/plugins/loop"
	"github.com/sentinel-runtime/sentinel/plugins/parallel"
	"github.com/sentinel-runtime/sentinel/plugins/plan"
	"github.com/sentinel-runtime/sentinel/plugins/sentinel"
	"github.com/sentinel-runtime/sentinel/plugins/set"
	"github.com/sentinel-runtime/sentinel/plugins/shell"
	"github.com/sentinel-runtime/sentinel/plugins/stop"
	"github.com/sentinel-runtime/sentinel/plugins/verify"
	"github.com/sentinel-runtime/sentinel/plugins/wait"
	"github.com/sentinel-runtime/sentinel/plugins/watch"
	"github.com/sentinel-runtime/sentinel/sdk"
)

// plugin lists the step types. The order matters for steps without a type: approve
// precedes llm, so that a prompt with approvers is of type approve.
func plugin() sdk.Plugin {
	return sdk.Plugin{
		Name:    "builtin",
		Version: "1.0.0",
		Steps: []sdk.Step{
			command.Step(),
			approve.Step(),
			llm.Step(),
			watch.Step(),
			condition.Step(),
			sentinel.Step(),
			emit.Step(),
			loop.Step(),
			parallel.Step(),
			shell.Step(),
			wait.Step(),
			set.Step(),
			verify.Step(),
			plan.Step(),
			group.Step(),
			fail.Step(),
			stop.Step(),
			http.Step(),
		},
		Permissions: []sdk.Permission{
			{Use: sdk.UseCommand, Names: []string{"*"}, Reason: "Steps of type command, shell and http, and the tools of models, call the commands a definition names."},
			{Use: sdk.UseLLM, Reason: "Steps of type llm ask language models."},
			{Use: sdk.UseWatch, Reason: "Steps of type watch read the output of processes that their run started, and files of the workspace."},
			{Use: sdk.UseSpawn, Reason: "Steps of type sentinel start child runs."},
			{Use: sdk.UseEmit, Reason: "Steps of type emit publish events."},
		},
		Stateless: true,
	}
}

func init() { sdk.Main(plugin()) }

func main() {}
