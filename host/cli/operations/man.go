package operations

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
)

// manCommand writes the manual pages of the verbs, which packages of a release install.
func (a verbs) manCommand(root *cobra.Command) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "man [VERB...]", Short: "Write the manual page of a verb, or of all",
		Long: "Writes a page in the format of man, of sentinel itself without VERB. With --dir it writes the\n" +
			"pages of all verbs into a folder, such as /usr/local/share/man/man1.",
		Example: "  sentinel man run | man -l -\n  sentinel man --dir /usr/local/share/man/man1",
		RunE: func(_ *cobra.Command, args []string) error {
			if dir != "" {
				if len(args) > 0 {
					return app.NewUsageError("--dir writes the pages of all verbs", "leave out "+strings.Join(args, " "))
				}
				return a.manPages(root, a.Path(dir))
			}
			verb, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return app.NotFound("`sentinel help` lists the verbs", "unknown verb %q", strings.Join(args, " "))
			}
			text, err := a.manPage(verb)
			if err != nil {
				return err
			}
			_, err = a.Out.Stream().Write(text)
			return err
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "folder that gets the pages of all verbs")
	return c
}

// manPage returns the page of a verb. Its date is that of the commit, so that one program always
// writes the same page.
func (a verbs) manPage(verb *cobra.Command) ([]byte, error) {
	verb.DisableAutoGenTag = true
	var page bytes.Buffer
	header := doc.GenManHeader{Section: "1", Source: "sentinel " + a.Env.Version, Manual: "Sentinel"}
	for _, s := range buildSettings() {
		if at, err := time.Parse(time.RFC3339, s.value); s.name == "committed" && err == nil {
			header.Date = &at
		}
	}
	if err := doc.GenMan(verb, &header, &page); err != nil {
		return nil, fmt.Errorf("manual page of %s: %w", verb.CommandPath(), err)
	}
	return page.Bytes(), nil
}

// manPages writes the pages of a verb and of those below it.
func (a verbs) manPages(verb *cobra.Command, dir string) error {
	for _, below := range verb.Commands() {
		if below.IsAvailableCommand() {
			if err := a.manPages(below, dir); err != nil {
				return err
			}
		}
	}
	page, err := a.manPage(verb)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := strings.ReplaceAll(verb.CommandPath(), " ", "-") + ".1"
	return atomicfile.Replace(filepath.Join(dir, name), page, 0o644)
}
