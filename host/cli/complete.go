package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/operations"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
)

const (
	// completionLimit is how long a completion may take, unless operations.CompletionTimeout is set. A
	// shell waits for it with each TAB.
	completionLimit = 2 * time.Second
	completionRuns  = 50 // the newest are offered
)

// A completer offers words for an argument of a command line. It asks the server or reads the store as
// the commands do, writes nothing to the terminal, and offers nothing where that fails or takes too long.
type completer struct{ *app.App }

// A source returns words, each with what it is behind a tab.
type source func(c completer, ctx context.Context, s *app.Session) ([]string, error)

// sources are the words of the arguments, by the names that the use lines have for them.
var sources = map[string]source{
	"RUN": completer.runs, "NAME": completer.names, "SENTINEL": completer.names, "TICKET": completer.tickets, "ID": completer.tickets, "RULE": completer.rules,
}

// others are the sources of NAME below commands whose NAME is not that of a sentinel.
var others = map[string]source{"plugin": completer.plugins, "secret": completer.none}

// complete sets how the arguments of all commands are completed, by their use lines.
func complete(a *app.App, root *cobra.Command) {
	c := completer{a}
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{output.FormatTable, output.FormatJSON, output.FormatJSONL}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	var walk func(cmd *cobra.Command, top string)
	walk = func(cmd *cobra.Command, top string) {
		switch {
		case cmd.ValidArgs != nil || cmd.ValidArgsFunction != nil || cmd.HasSubCommands():
		default:
			cmd.ValidArgsFunction = c.arguments(cmd.Use, top)
		}
		for _, sub := range cmd.Commands() {
			walk(sub, top)
		}
	}
	for _, cmd := range root.Commands() {
		walk(cmd, cmd.Name())
	}
	if help, _, err := root.Find([]string{"help"}); err == nil {
		for _, cmd := range root.Commands() {
			if cmd.IsAvailableCommand() {
				help.ValidArgs = append(help.ValidArgs, cmd.Name()+"\t"+cmd.Short)
			}
		}
	}
}

// arguments returns the function that completes the arguments of a use line, such as RUN|NAME.
func (c completer) arguments(use, top string) cobra.CompletionFunc {
	places := strings.Fields(strings.NewReplacer("(", " ", ")", " ", "[", " ", "]", " ", " | ", "|", "...", "").Replace(use))[1:]
	return func(cmd *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
		var wanted []source
		files := cobra.ShellCompDirectiveNoFileComp
		if len(places) > 0 && (len(args) < len(places) || strings.Contains(use, "...")) {
			for kind := range strings.SplitSeq(places[min(len(args), len(places)-1)], "|") {
				from := sources[kind]
				if own := others[top]; own != nil && kind == "NAME" {
					from = own
				}
				switch {
				case from != nil:
					wanted = append(wanted, from)
					if kind == "NAME" && others[top] == nil && !c.ByURL() {
						words = c.files()
					}
				case kind == "FILE" || kind == "DIR" || kind == "FOLDER":
					files = cobra.ShellCompDirectiveDefault
				}
			}
		}
		for _, w := range c.words(cmd.Context(), wanted) {
			name, _, _ := strings.Cut(w, "\t")
			words = slices.DeleteFunc(words, func(file string) bool { return strings.HasPrefix(file, name+"\t") }) // it is stored
			words = append(words, w)
		}
		return words, files
	}
}

// words returns the words of all sources, as far as they come in time.
func (c completer) words(ctx context.Context, wanted []source) []string {
	if len(wanted) == 0 {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	limit, err := app.Length(operations.CompletionTimeout, c.Env.Getenv(operations.CompletionTimeout))
	if err != nil {
		limit = completionLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c.Err, c.Flags.Quiet, c.Looks = output.Printer{Writer: io.Discard}, true, true
	got := make(chan []string, 1)
	go func() { // a store that is slow to open is left to the end of the process
		got <- c.ask(ctx, wanted)
	}()
	select {
	case words := <-got:
		return words
	case <-ctx.Done():
		return nil
	}
}

func (c completer) ask(ctx context.Context, wanted []source) (words []string) {
	s, err := c.Connect(ctx, true)
	if err != nil {
		return nil
	}
	defer c.CloseSession(s, &err)
	for _, from := range wanted {
		more, err := from(c, ctx, s)
		if err != nil {
			continue // the other sources may have words
		}
		words = append(words, more...)
	}
	return words
}

// word is a word with its description. Both are of the store, and may have anything in them.
func word[S ~string](name S, description string) string {
	return string(output.Escape(name)) + "\t" + string(output.Clip(description, 60))
}

func (c completer) runs(ctx context.Context, s *app.Session) ([]string, error) {
	all, err := s.List(ctx, map[string]any{"only": "runs", "limit": completionRuns})
	var words []string
	for _, r := range all.Runs {
		words = append(words, word(output.ShortID(r.ID), fmt.Sprintf("%s %s, %s", r.Sentinel, r.Status, output.Ago(c.Env.Now(), r.CreatedAt))))
	}
	return words, err
}

func (c completer) names(ctx context.Context, s *app.Session) ([]string, error) {
	all, err := s.List(ctx, map[string]any{"only": "sentinels"})
	if err != nil {
		return nil, err
	}
	var words []string
	for _, l := range all.Sentinels {
		words = append(words, word(l.SentinelID, l.Name))
	}
	return words, nil
}

// files returns the sentinels in the folders of the project, by the names of their files: to read all
// of them is slow.
func (c completer) files() (words []string) {
	c.Err = output.Printer{Writer: io.Discard} // a folder that cannot be read
	for _, dir := range c.Folders() {
		for _, file := range c.DefinitionFiles(dir) {
			words = append(words, word(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), c.Relative(file)))
		}
	}
	return words
}

func (c completer) tickets(ctx context.Context, s *app.Session) ([]string, error) {
	var out struct {
		Tickets []struct{ ID, State, Title string } `json:"tickets"`
	}
	err := s.Call(ctx, "ticket/list", map[string]any{"limit": completionRuns}, &out)
	var words []string
	for _, t := range out.Tickets {
		words = append(words, word(t.ID, t.State+" "+t.Title))
	}
	return words, err
}

func (c completer) rules(ctx context.Context, s *app.Session) ([]string, error) {
	var out struct {
		Rules []struct{ ID, State, Text string } `json:"rules"`
	}
	err := s.Call(ctx, "ticket/rules", map[string]any{}, &out)
	var words []string
	for _, r := range out.Rules {
		words = append(words, word(r.ID, r.State+" "+r.Text))
	}
	return words, err
}

func (c completer) plugins(ctx context.Context, s *app.Session) ([]string, error) {
	var out struct {
		Plugins []struct{ Name, State string } `json:"plugins"`
	}
	err := s.Call(ctx, "plugin/list", map[string]any{}, &out)
	var words []string
	for _, p := range out.Plugins {
		words = append(words, word(p.Name, p.State))
	}
	return slices.Compact(words), err
}

// none are the words of a place that has a new name.
func (completer) none(context.Context, *app.Session) ([]string, error) { return nil, nil }
