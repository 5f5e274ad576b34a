package operations

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
)

// untrusted is one item in the output of `sentinel trust`.
type untrusted struct {
	File    string       `json:"file"`
	Kind    content.Kind `json:"kind"`
	Changed bool         `json:"changed"`
	Digest  string       `json:"digest,omitempty"` // SHA-256 of its content in hex, none for a store
	// Definitions are those of a store that is taken over.
	Definitions []app.StoredDefinition `json:"definitions,omitempty"`
}

// trustCommand shows what of a project does not count, and makes it count.
func (a verbs) trustCommand() *cobra.Command {
	var yes, revoke, calls, store bool
	var forget string
	c := &cobra.Command{
		Use: "trust [DIR]", Short: "Show what came with a project and would be executed, and trust it",
		Long: "Definitions, recipes and plugins that came with a folder count only after you have trusted\n" +
			"them: they are executed with your rights. What you write yourself in a folder that you\n" +
			"trust needs no question, and what git brings into it later does. Servers load what is trusted\n" +
			"within seconds. The setting trust.roots names folders whose projects need no question.\n\n" +
			"A store that came with a folder is moved to " + content.AsideFolder + " in the state folder, and a new\n" +
			"one begins. If it is yours, as after you have moved the project, --with-store takes it over: its\n" +
			"runs are paused, and what else it has goes on, such as triggers, events that wait and tickets.\n\n" +
			"--calls lists the kinds of calls that `sentinel do` makes in the folder without a question, because\n" +
			"you answered always. --forget KIND has it ask again.",
		Example: "  sentinel trust\n  sentinel trust ~/src/tool --yes\n  sentinel trust --revoke\n  sentinel trust --calls\n  sentinel trust --forget 'go test'",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.ServedDir = app.ProjectDir(a.Path(args[0]))
			}
			if err := a.OnlyPerson(cmd.Context(), "trust"); err != nil {
				return err
			}
			workspace := a.Workspace()
			if len(args) > 0 {
				workspace = a.Path(args[0])
			}
			switch {
			case calls && (yes || revoke || forget != "") || forget != "" && (yes || revoke):
				return app.NewUsageError("--calls, --forget, --revoke and --yes exclude each other", "")
			case store && (calls || revoke || forget != ""):
				return app.NewUsageError("--with-store is for trusting: it excludes --calls, --forget and --revoke", "")
			case calls:
				return a.listCalls(workspace)
			case forget != "":
				return a.forgetCalls(cmd.Context(), workspace, forget)
			}
			folder, err := a.Content()
			if err != nil {
				return err
			}
			if revoke {
				return errors.Join(a.revokeTrust(folder), a.forgetCalls(cmd.Context(), workspace, ""))
			}
			if !app.IsDir(a.Dir()) {
				return app.NotFound("name the folder of a project: sentinel trust DIR", "no folder %s", a.Relative(a.Dir()))
			}
			return a.trust(cmd.Context(), folder, yes, store)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "trust without a question what is shown")
	c.Flags().BoolVar(&store, "with-store", false, "take over the store that came with the folder: it is yours")
	c.Flags().BoolVar(&revoke, "revoke", false, "trust nothing of the project any more, and forget its calls; what a store has loaded stays in it")
	c.Flags().BoolVar(&calls, "calls", false, "list the kinds of calls that sentinel do makes here without a question")
	c.Flags().StringVar(&forget, "forget", "", "have sentinel do ask again about a kind of call, such as 'go test'")
	return c
}

// listCalls lists the kinds of calls that `sentinel do` makes in a folder without a question.
func (a verbs) listCalls(workspace string) error {
	allowed, err := a.AllowedCalls()
	if err != nil {
		return err
	}
	list, err := allowed.Of(workspace)
	if err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(map[string]any{"calls": append([]string{}, list...)})
	}
	if len(list) == 0 {
		a.Info("no kind of call is always allowed in %s", a.Relative(workspace))
	}
	for _, kind := range list {
		if err := a.Out.Printf("%s\n", output.Escape(kind)); err != nil {
			return err
		}
	}
	return nil
}

// forgetCalls removes a kind of call that is allowed in a folder; all with an empty kind.
func (a verbs) forgetCalls(ctx context.Context, workspace, kind string) error {
	allowed, err := a.AllowedCalls()
	if err != nil {
		return err
	}
	had, err := allowed.Remove(ctx, workspace, kind)
	if err == nil && !had && kind != "" {
		return app.NotFound("sentinel trust --calls lists them", "no call %q is always allowed in %s", kind, a.Relative(workspace))
	}
	return err
}

func (a verbs) revokeTrust(folder *content.Folder) error {
	had, err := folder.Revoke()
	switch {
	case err != nil:
		return err
	case !had:
		a.Info("nothing of %s was trusted", a.Relative(a.Dir()))
	}
	return nil
}

// trust shows what is not trusted and asks about it.
func (a verbs) trust(ctx context.Context, folder *content.Folder, yes, store bool) error {
	items, err := folder.Pending(a.State())
	if err != nil {
		return err
	}
	for i := range items {
		items[i].Take = store && items[i].Kind == content.State
	}
	if a.Flags.Output != output.FormatTable {
		list := make([]untrusted, 0, len(items))
		for _, i := range items {
			one := untrusted{File: i.Key, Kind: i.Kind, Changed: i.Changed}
			if i.Kind != content.State {
				one.Digest = fmt.Sprintf("%x", sha256.Sum256(i.Content))
			} else if i.Take {
				if one.Definitions, err = app.StoredDefinitions(ctx, i.Path); err != nil {
					return err
				}
			}
			list = append(list, one)
		}
		if err := a.WriteJSON(list); err != nil || !yes {
			return err
		}
	}
	links, err := folder.Links()
	if err != nil {
		return err
	}
	switch {
	case len(items) == 0 && len(links) > 0: // the error below says why nothing can be trusted
	case len(items) == 0:
		a.Info("nothing in %s waits for trust", a.Relative(a.Dir()))
	case a.Flags.Output == output.FormatTable:
		whole, err := a.ShowUntrusted(ctx, items)
		if err != nil {
			return err
		}
		if !whole && !yes {
			return app.NewUsageError("it is too long to show all of it and ask", "sentinel trust -v shows all of it")
		}
		if err := a.agreed(ctx, yes); err != nil {
			return err
		}
	}
	if err := folder.Approve(items); err != nil {
		return err
	}
	if err := folder.CheckState(a.State()); err != nil { // a service may have no right to record a new store
		return err
	}
	if len(links) > 0 {
		return links[0] // the next one follows once this one is removed
	}
	return nil
}

// agreed returns the error of a user who does not trust what was shown.
func (a verbs) agreed(ctx context.Context, yes bool) error {
	switch {
	case yes:
		return nil
	case !a.CanAsk():
		return app.NewUsageError("no terminal to ask whether to trust it", "read what it executes, then: sentinel trust --yes")
	}
	ok, err := a.ConfirmTrust(ctx)
	if err == nil && !ok {
		err = app.ExitError(app.ExitFailed)
	}
	return err
}
