package plugins

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/plugin/author"
)

// pluginInspectCommand shows what a module is, also of one that no host takes.
func (a verbs) pluginInspectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inspect FILE|DIR|NAME", Short: "Show a module: what it provides, asks for, imports; size, digest, cost",
		Long: "Reads the module, compiles it and has it describe itself. It makes no step and can reach nothing\n" +
			"meanwhile. Of a broken module it shows what can be read, and why it is refused.",
		Example: "  sentinel plugin inspect shout.wasm\n  sentinel plugin inspect slack_message -o json",
		Args:    app.ExactArgs("the module"),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := a.moduleOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r, err := author.Inspect(cmd.Context(), src.file, src.module, author.Options{Signature: a.signature})
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				err = a.WriteJSON(r)
			} else {
				err = a.showReport(r)
			}
			if err == nil && r.Problem != nil {
				return r.Problem
			}
			return err
		},
	}
}

// showReport writes a report for people; a broken module's is shorter.
func (a verbs) showReport(r author.Report) error {
	var rows []output.Row
	add := func(name termtext.Text, value string) {
		rows = append(rows, output.Row{a.PaintOut.Dim(name), output.Escape(value)})
	}
	add("file", r.File)
	add("size", megabytes(int64(r.Size)))
	add("sha256", r.Digest)
	if r.Signature != "" {
		add("signature", r.Signature)
	}
	if m := r.Manifest; m != nil {
		add("plugin", fmt.Sprintf("%s %s, ABI %d", m.Name, m.Version, m.ABI))
		for _, s := range m.Steps {
			text := s.Type + "  " + s.Summary
			if s.ReadOnly {
				text += "  (changes nothing outside the run)"
			}
			add("step type", text)
		}
		for _, s := range m.Steps {
			if s.Provides != nil {
				add("provides", roleText(string(s.Provides.As), s.Provides.Name, s.Type))
			}
		}
		for _, permission := range m.Permissions {
			add("asks for", asked(permission.Use, permission.Names, permission.Reason))
		}
		if len(m.Permissions) == 0 {
			add("asks for", "nothing: it is live at once")
		}
		if m.Stateless {
			add("stateless", "yes: instances may be reused where the operator allows it")
		}
		add("compile", fmt.Sprintf("%.0f ms the first time on this machine", r.CompileMs))
		add("memory", megabytes(r.MemoryBytes)+" before its first step")
	}
	var uses, kernel, wasi []string
	for _, im := range r.Imports {
		switch module, name, _ := strings.Cut(im.Name, " "); module {
		case "extism:host/user":
			uses = append(uses, name)
		case "extism:host/env":
			kernel = append(kernel, name)
		default:
			wasi = append(wasi, im.Name)
		}
	}
	for _, list := range []struct {
		name termtext.Text
		of   []string
	}{{"host calls", uses}, {"kernel", kernel}, {"other imports", wasi}} {
		if len(list.of) > 0 && (list.name == "host calls" || a.Flags.Verbose || r.Problem != nil) {
			add(list.name, strings.Join(list.of, " "))
		}
	}
	for _, ex := range r.Exports {
		if a.Flags.Verbose || r.Problem != nil || strings.HasPrefix(ex.Type, "(") && len(r.Exports) <= 8 {
			add("export", ex.Name+" "+ex.Type)
		}
	}
	return a.Pairs(rows)
}
