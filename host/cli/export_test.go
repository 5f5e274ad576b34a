package cli

import (
	"fmt"
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

// CheckExamples parses the lines of the examples in the help of every verb, and returns how
// many there are and what is wrong with them.
func CheckExamples(words func(line string) []string) (n int, problems []string) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			for _, args := range split(words(line)) {
				n++
				if err := parseExample(args); err != nil {
					problems = append(problems, fmt.Sprintf("%s: %s: %v", c.CommandPath(), strings.TrimSpace(line), err))
				}
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand(&app.App{}))
	return n, problems
}

// split returns the calls of this program in the words of a shell line.
func split(words []string) (calls [][]string) {
	own := false
	for _, word := range words {
		switch {
		case word == "|" || word == "&&" || strings.ContainsAny(word[:1], "<>"):
			own = false
		case own:
			calls[len(calls)-1] = append(calls[len(calls)-1], word)
		case word == "sentinel":
			own, calls = true, append(calls, nil)
		}
	}
	return calls
}

func parseExample(args []string) error {
	root := rootCommand(&app.App{})
	root.InitDefaultHelpCmd()
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return err
	}
	return c.ValidateFlagGroups()
}
