package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
	"github.com/sentinel-runtime/sentinel/internal/linediff"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Content returns what of the project's content the user trusts.
func (a *App) Content() (*content.Folder, error) {
	p, err := a.Policy()
	if err != nil {
		return nil, err
	}
	return p.Content(), nil
}

// WriteProjectFile has write write a file into dir on behalf of the user, which then needs no
// trust; see [content.Folder.Write].
func (a *App) WriteProjectFile(dir string, write func() (name string, err error)) error {
	folder, err := a.Content()
	if err != nil {
		return err
	}
	return folder.Write(dir, write)
}

// CheckLink returns why a verb must not write to the folder of the project; see [content.Folder.CheckLink].
func (a *App) CheckLink() error {
	folder, err := a.Content()
	if err != nil {
		return err
	}
	return folder.CheckLink()
}

// AskTrust asks a person at a terminal about content of the project that is not trusted,
// before a verb that would execute it. Without a terminal, with --untrusted or after a no
// it changes nothing, and reading such content is an error.
func (a *App) AskTrust(ctx context.Context) error {
	if a.Flags.Untrusted || !a.CanAsk() || a.Env.Engine != nil || a.OnlyPerson(ctx, "trust") != nil {
		return nil
	}
	if _, named, _ := client.FromEnv(a.Env.Getenv); named && a.Flags.State == "" {
		return nil // nothing of this folder is used
	}
	folder, err := a.Content()
	if err != nil {
		return err
	}
	items, err := folder.Pending(a.State())
	if err != nil || len(items) == 0 {
		return err
	}
	switch whole, err := a.ShowUntrusted(ctx, items); {
	case err != nil:
		return err
	case !whole:
		a.Info("it is too long to show and ask here: sentinel trust -v shows all of it and asks")
		return nil
	}
	if yes, err := a.ConfirmTrust(ctx); err != nil || !yes {
		return err
	}
	return folder.Approve(items)
}

// ConfirmTrust asks whether to trust what [App.ShowUntrusted] has shown.
func (a *App) ConfirmTrust(ctx context.Context) (yes bool, err error) {
	if yes, err = a.Confirm(ctx, "trust this? It is executed with your rights"); err == nil && !yes {
		a.Info("nothing of it is used; sentinel trust asks again")
	}
	return yes, err
}

// Confirm asks a question and reports whether the user typed y or yes.
func (a *App) Confirm(ctx context.Context, question string) (bool, error) {
	a.PrintErr("%s %s yes / no: ", a.Paint.Strong("?"), question)
	select {
	case line, ok := <-a.TypedLines():
		if !ok {
			a.PrintErr("\n")
		}
		answer := strings.ToLower(strings.TrimSpace(line))
		return ok && (answer == "y" || answer == "yes"), nil
	case <-ctx.Done():
		a.PrintErr("\n")
		return false, context.Cause(ctx)
	}
}

// untrustedRows is how many rows of a terminal are shown of all items together without -v. What is not
// shown whole is not asked about.
const (
	untrustedRows = 400
	rowColumns    = 80
)

// terminalRows is how many rows a terminal usually shows at once.
const terminalRows = 24

// ShowUntrusted writes what items are, for the person who is asked, and reports whether that
// is all of it. The error names an item that cannot be read, and then no question follows.
func (a *App) ShowUntrusted(ctx context.Context, items []content.Item) (whole bool, err error) {
	var p output.Page
	left, whole := untrustedRows, true
	p.Printf("%s came with this folder and you have not trusted it yet:\n", a.Relative(a.Dir()))
	for _, i := range items {
		change := "new"
		if i.Changed {
			change = "changed since you trusted it"
		}
		p.Printf("  %s  %s\n", a.Paint.Strong(output.Escape(i.Key)), a.Paint.Dim(output.Escape(string(i.Kind)+", "+change)))
		lines, err := untrustedText(ctx, i)
		if err != nil {
			return false, err
		}
		lines = strings.Split(termtext.Blanks(strings.Join(lines, "\n")), "\n")
		shown := 0
		for ; shown < len(lines); shown++ {
			line := output.Escape(lines[shown])
			if left -= 1 + len(line)/rowColumns; left < 0 && !a.Flags.Verbose {
				break
			}
			p.Printf("    %s\n", line)
		}
		if more := len(lines) - shown; more > 0 {
			p.Printf("    ... %d more lines: sentinel trust -v\n", more)
			whole = false
		}
	}
	if rows := untrustedRows - left; rows > terminalRows {
		p.Printf("these are some %d rows of a terminal: read them from the first one on\n", rows)
	}
	a.PrintErr("%s", p.Text())
	return whole, nil
}

// untrustedText describes an item in lines: the difference to what was trusted, or its whole
// text. A summary would leave out what matters: a variable can have the command.
func untrustedText(ctx context.Context, i content.Item) ([]string, error) {
	switch {
	case i.Kind == content.State && !i.Take:
		return []string{"a store with sentinels, triggers and runs of its own; it is not used: it is moved to " + content.AsideFolder + " in this folder, and a new one begins",
			"if it is yours, as after you have moved the project: sentinel trust --with-store"}, nil
	case i.Kind == content.State:
		stored, err := storedText(ctx, i.Path)
		return append([]string{"a store with sentinels, triggers and runs of its own; the runs are paused until you resume them, what else waits in it goes on, such as triggers, events and tickets, and its tokens, checkpoints and worktrees are removed"}, stored...), err
	case i.Kind == content.Plugin:
		return []string{fmt.Sprintf("%d bytes, sha256 %x; it may use what you allow: sentinel plugin allow", len(i.Content), sha256.Sum256(i.Content))}, nil
	case i.Changed && i.Kind != content.Environment: // of which no earlier text is kept
		diff := linediff.Unified(strings.SplitAfter(string(i.Before), "\n"), strings.SplitAfter(string(i.Content), "\n"), "trusted", "now")
		return strings.Split(strings.TrimSuffix(diff, "\n"), "\n"), nil
	}
	return strings.Split(strings.TrimSuffix(string(i.Content), "\n"), "\n"), nil
}

// A StoredDefinition is one of the definitions that a store brings and that would be executed.
type StoredDefinition struct {
	ID       sentinels.ID `json:"id"`
	Revision int          `json:"revision"`
	Secrets  []string     `json:"secrets,omitempty"` // that it names

	Run        sentinels.RunID `json:"run,omitempty"` // has not ended and goes on with Definition, which is not the newest
	Definition json.RawMessage `json:"definition"`
}

// StoredDefinitions returns what the store of a state folder would execute. The store is not opened.
func StoredDefinitions(ctx context.Context, state string) ([]StoredDefinition, error) {
	stored, err := runtime.StoredDefinitions(ctx, state)
	if err != nil {
		return nil, err
	}
	list := make([]StoredDefinition, len(stored))
	for i, s := range stored {
		names := map[string]bool{}
		var value any
		if err := json.Unmarshal(s.Definition, &value); err != nil {
			return nil, fmt.Errorf("read sentinel %q of the store in %q: %w", s.ID, state, err)
		}
		addSecrets(names, value)
		list[i] = StoredDefinition{s.ID, s.Revision, slices.Sorted(maps.Keys(names)), s.Run, s.Definition}
	}
	return list, nil
}

// addSecrets adds the names of the secrets in a value of a definition, of whatever step types.
func addSecrets(names map[string]bool, value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			addSecrets(names, item)
		}
	case map[string]any:
		if name, ok := v["secret"].(string); ok && len(v) == 1 {
			names[name] = true
		}
		for _, member := range v {
			addSecrets(names, member)
		}
	}
}

// storedText describes the definitions in a store, each with its whole text.
func storedText(ctx context.Context, state string) ([]string, error) {
	list, err := StoredDefinitions(ctx, state)
	if err != nil {
		return nil, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("the store in %q came with the folder and cannot be trusted: not all that it would execute can be shown: %v", state, err),
			Hint: "remove it, or get it again from where it came"}
	}
	var lines []string
	for _, d := range list {
		line := fmt.Sprintf("sentinel %s, revision %d", d.ID, d.Revision)
		if d.Run != "" {
			line = fmt.Sprintf("run %s of sentinel %s, not ended, goes on with", d.Run, cmp.Or(d.ID, "(no name)"))
		}
		if len(d.Secrets) > 0 {
			line += ", names the secrets " + strings.Join(d.Secrets, ", ")
		}
		lines = append(lines, line)
		var text bytes.Buffer
		if json.Indent(&text, d.Definition, "  ", "  ") != nil {
			text.Write(d.Definition)
		}
		lines = append(lines, strings.Split("  "+text.String(), "\n")...)
	}
	return lines, nil
}
