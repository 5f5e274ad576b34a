package plugins

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	hostplugin "github.com/sentinel-runtime/sentinel/host/plugin"
	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// pluginListCommand shows the plugins, live or not, and below each one of others
// what it asks for and what it is allowed.
func (a verbs) pluginListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List plugins with their step types, what they ask for, and what waits",
		Example: "  sentinel plugin list",
		Args:    app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			a.ReportsPlugins = true
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			var out struct {
				Plugins []hostplugin.Listed `json:"plugins"`
			}
			if err := s.Call(cmd.Context(), "plugin/list", map[string]any{}, &out); err != nil {
				return err
			}
			return a.showPlugins(out.Plugins)
		},
	}
}

func (a verbs) showPlugins(list []hostplugin.Listed) error {
	if done, err := app.WriteItems(a.App, list, list); done {
		return err
	}
	paint := a.PaintOut
	rows := []output.Row{output.Head(paint, "PLUGIN", "VERSION", "STATE", "FILE", "DIGEST", "STEP TYPES")}
	for _, p := range list {
		types := make([]string, 0, len(p.Types))
		for _, t := range p.Types {
			types = append(types, string(t))
		}
		rows = append(rows, output.Row{output.Escape(p.Name), output.Escape(p.Version), a.pluginState(p), output.Escape(p.Source), termtext.Sprintf("%.12s", p.Digest), output.Clip(strings.Join(types, " "), 50)})
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	var b output.Page
	for _, p := range list {
		if !p.Trusted && (len(p.Permissions) > 0 || p.Approval != nil || p.State != plugin.Live || p.Refused != "") {
			a.aboutPlugin(&b, p)
		}
	}
	return a.Out.Write(b.Text())
}

// pluginState is the state in a word.
func (a verbs) pluginState(p hostplugin.Listed) termtext.Text {
	switch {
	case p.Trusted:
		return a.PaintOut.Dim("built in")
	case p.State == plugin.Refused:
		return a.PaintOut.Bad("refused")
	case p.State == plugin.Waiting && p.Approval != nil && p.Approval.Denied:
		return a.PaintOut.Bad("denied")
	case p.State == plugin.Waiting, p.Next != nil:
		return a.PaintOut.Warn("waiting")
	}
	return a.PaintOut.Good("live")
}

// aboutPlugin writes what a person needs to decide about a plugin, and what was
// decided.
func (a verbs) aboutPlugin(b *output.Page, p hostplugin.Listed) {
	paint := a.PaintOut
	b.Printf("\n%s\n", paint.Strong(output.Escape(p.Name)))
	permissions, waits := p.Permissions, p.Problem
	if p.Next != nil {
		b.Printf("  version %s serves; version %s (%s) waits\n", p.Version, p.Next.Version, termtext.Sprintf("%.12s", p.Next.Digest))
		permissions, waits = p.Next.Permissions, p.Next.Problem
	} else if p.Refused != "" {
		waits = p.Refused
	}
	if waits != "" {
		b.Printf("  %s\n", paint.Warn(termtext.Block(waits, "    ")))
	}
	for _, r := range p.Roles {
		line := roleText(string(r.As), r.Name, string(r.Type))
		if p.State == plugin.Live && !r.Active {
			line += ": not allowed, so it is only a step"
		}
		b.Printf("  %-9s %s\n", "provides", output.Clip(line, 150))
	}
	writePermissions(b, paint, permissions, nil)
	if p.Next != nil {
		writePermissions(b, paint, p.Next.Missing, []string{"new"})
	}
	if p.Grant != nil && len(p.Permissions) > 0 {
		writeGrant(b, paint, *p.Grant)
	}
	if v := p.Approval; v != nil {
		word := "allowed"
		if v.Denied {
			word = "denied"
		}
		line := fmt.Sprintf("%s by %s at %s", word, v.By, output.WithZone(v.At.Local(), "2006-01-02 15:04"))
		switch {
		case v.Seal == grant.Bad:
			line += ", elsewhere or edited since: it does not count here"
		case v.Pin:
			line += ", for these bytes only"
		}
		if v.Carried != nil {
			line += fmt.Sprintf(", carried over from %.12s", v.Carried.From)
		}
		b.Printf("  %s\n", paint.Dim(output.Escape(line)))
	}
	if p.State == plugin.Waiting || p.Next != nil {
		b.Printf("  %s sentinel plugin allow %s\n", paint.Dim("hint:"), p.Name)
	}
}

// roleText is a role of a step type in words.
func roleText(as, name, stepType string) string {
	if name != "" {
		return fmt.Sprintf("%s %s by step type %s", as, name, stepType)
	}
	return fmt.Sprintf("%s %s", as, stepType)
}

// writePermissions writes what a plugin asks for, one permission a line, with its own reason.
func writePermissions(b *output.Page, paint output.Palette, permissions []plugin.Permission, mark []string) {
	label := "asks for"
	if len(mark) > 0 {
		label = mark[0]
	}
	for _, permission := range permissions {
		b.Printf("  %-9s %s  %s\n", label, output.Clip(strings.TrimSpace(permission.Use+" "+strings.Join(permission.Names, " ")), 100), paint.Dim(output.Clip(permission.Reason, 200)))
	}
}

// writeGrant writes what a plugin is allowed, a use a line.
func writeGrant(b *output.Page, paint output.Palette, g plugin.Grant) {
	for _, line := range grantLines(g) {
		b.Printf("  %-9s %s\n", "may", paint.Good(output.Clip(line, 120)))
	}
}

// grantLines is a grant in words.
func grantLines(g plugin.Grant) []string {
	var lines []string
	for _, permission := range g.Allow {
		if permission.Use != "secret" && permission.Use != "folder" { // said with where they go
			lines = append(lines, strings.TrimSpace(permission.Use+" "+strings.Join(permission.Names, " ")))
		}
	}
	for _, name := range output.SortedKeys(g.Secrets) {
		lines = append(lines, fmt.Sprintf("send the secret %s to %s", name, strings.Join(g.Secrets[name], " ")))
	}
	for _, word := range output.SortedKeys(g.Folders) {
		verb := "read"
		if g.Folders[word].Write {
			verb = "read and write"
		}
		lines = append(lines, fmt.Sprintf("%s the folder %s, which it calls %s", verb, g.Folders[word].Path, word))
	}
	if g.Private {
		lines = append(lines, "send requests to addresses that are not public")
	}
	if g.Reuse {
		lines = append(lines, "use an instance for several steps")
	}
	if g.Memory > 0 {
		lines = append(lines, fmt.Sprintf("use %d MB of memory", g.Memory>>20))
	}
	if len(lines) == 0 {
		lines = []string{"nothing but run"}
	}
	return lines
}
