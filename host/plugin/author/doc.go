// Package author is what those who write STEP PLUGINS do with them on their own
// machine: build a project, look into a module, measure it. It needs no store
// and no server; trying single steps is package plugintest.
package author
