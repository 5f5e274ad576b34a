// Package grant keeps what the operator of a HOST allows the step plugins of
// others, in the file plugins/grants.json of the project.
//
// An entry is bound to the bytes of one plugin, by their digest, and sealed: a
// keyed hash over the entry and the folder it is in, with a key in the user's own
// configuration folder. So what a repository brings along grants nothing on the
// machine of a user who clones it, and neither does an edit by hand.
//
//	g := grant.New(grant.Options{File: ".sentinel/plugins/grants.json", Key: key})
//	err := g.Set(ctx, grant.Entry{Name: "slack", Digest: digest, Grant: allowed})
//
// A [Store] is the engine's [plugin.Grants]. Why a changed file keeps its grant
// or does not is in RATIONALE.md; host/GRANTS.md is the operator's page.
package grant
