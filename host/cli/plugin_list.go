package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// pluginListCommand shows the plugins, live or not.
func (a *app) pluginListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List plugins with their step types, what they ask for, and what waits", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			var out struct {
				Plugins []runtime.PluginInfo `json:"plugins"`
			}
			if err := s.call(cmd.Context(), "plugin/list", map[string]any{}, &out); err != nil {
				return err
			}
			return a.showPlugins(out.Plugins)
		},
	}
}

// showPlugins writes a plugin a line.
func (a *app) showPlugins(list []runtime.PluginInfo) error {
	switch a.flags.output {
	case asJSON:
		return a.writeJSON(list)
	case asJSONL:
		for _, p := range list {
			if err := a.writeJSON(p); err != nil {
				return err
			}
		}
		return nil
	}
	rows := [][]string{head(a.paintOut, "PLUGIN", "VERSION", "FILE", "STEP TYPES", "")}
	for _, p := range list {
		types := make([]string, 0, len(p.Types))
		for _, t := range p.Types {
			types = append(types, string(t))
		}
		rows = append(rows, []string{p.Name, p.Version, p.Source, clip(strings.Join(types, " "), 60), clip(p.Problem+p.Refused, 80)})
	}
	return table(a.env.Stdout, rows)
}
