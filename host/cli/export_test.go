package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// Verbs returns the path of every verb that can be run, without the program's name.
func Verbs() []string {
	var list []string
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		for _, sub := range c.Commands() {
			name := strings.TrimSpace(path + " " + sub.Name())
			if sub.Runnable() {
				list = append(list, name)
			}
			walk(sub, name)
		}
	}
	root := rootCommand(&app.App{})
	root.InitDefaultHelpCmd()
	walk(root, "")
	return list
}
