package shell

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// foldAt is the number of characters after which a line of a preview is folded, so that no
// part of what is executed is cut off.
const foldAt = 160

// longPreview is the number of rows behind which a preview says how long the line is.
const longPreview = 20

// preview shows the line, the folder and what else the program gets.
func (m *Manager) preview(_ context.Context, call *command.Call, in executeIn) (command.Preview, error) {
	if _, err := in.argv(); err != nil {
		return command.Preview{}, err
	}
	dir, err := folder(call.Workspace, in.Cwd)
	if err != nil {
		return command.Preview{}, err
	}
	words := append([]string{in.Command}, quoted(in.Args)...)
	if len(in.Argv) > 0 {
		words = quoted(in.Argv)
	}
	var b strings.Builder
	line := strings.Join(words, " ")
	fmt.Fprintf(&b, "$ %s\n", fold(line))
	if rows := strings.Count(line, "\n") + 1; rows > longPreview || len(line) > longPreview*foldAt/4 {
		fmt.Fprintf(&b, "these are all of its %d lines, %d bytes\n", rows, len(line))
	}
	fmt.Fprintf(&b, "in %s\n", quoted([]string{dir})[0])
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		value := strconv.Quote(in.Env[name].Text)
		if secret := in.Env[name].Secret; secret != "" {
			value = "the secret " + quoted([]string{secret})[0]
		}
		fmt.Fprintf(&b, "with %s\n", fold(quoted([]string{name})[0]+"="+value))
	}
	if in.Wait != nil && !*in.Wait {
		b.WriteString("in the background\n")
		if in.Ready != nil {
			fmt.Fprintf(&b, "ready when %s\n", fold(strings.Join(quoted([]string{in.Ready.HTTP + in.Ready.TCP + in.Ready.Match}), " ")))
		}
	}
	if in.Stdin != "" {
		fmt.Fprintf(&b, "which reads:\n  %s", fold(in.Stdin))
	}
	return command.Preview{Text: b.String()}, nil
}

// quoted quotes the words that a shell would not read as one word.
func quoted(words []string) []string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("_-./:=,+@%", r)
	}
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; w == "" || strings.ContainsFunc(w, func(r rune) bool { return !plain(r) }) {
			out[i] = strconv.Quote(w)
		}
	}
	return out
}

// fold breaks a text into lines of at most foldAt characters; all but the first are indented. Long stretches of
// blanks become counts.
func fold(text string) string {
	var lines []string
	for line := range strings.SplitSeq(termtext.Blanks(strings.TrimSuffix(text, "\n")), "\n") {
		runes := []rune(line)
		for len(runes) > foldAt {
			lines, runes = append(lines, string(runes[:foldAt])), runes[foldAt:]
		}
		lines = append(lines, string(runes))
	}
	return strings.Join(lines, "\n  ")
}
