package git

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// maxText bounds the text of one answer, as JSON, in bytes; sdk/ABI.md A8 has
// 256 KiB for the whole.
const maxText = 180 << 10

// maxFiles bounds the list of files in one answer.
const maxFiles = 500

// status fills in what git status says.
func (r *repository) status(ctx context.Context, out *Result) error {
	text, err := r.must(ctx, append([]string{"status"}, pathspec([]string{"--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty"}, nil)...)...)
	if err != nil {
		return err
	}
	readStatus(text, out)
	clean := len(out.Files) == 0
	out.Clean = &clean
	var b strings.Builder
	fmt.Fprintf(&b, "on branch %s", out.Branch)
	if out.Upstream != "" {
		fmt.Fprintf(&b, ", %d ahead and %d behind %s", out.Ahead, out.Behind, out.Upstream)
	}
	b.WriteByte('\n')
	for _, f := range out.Files {
		fmt.Fprintf(&b, "%1s%1s %s\n", f.Staged, f.Changed, f.Path)
	}
	out.Output = b.String()
	return nil
}

// readStatus parses the second porcelain format with zero bytes between the
// entries.
func readStatus(text string, out *Result) {
	entries := strings.Split(text, "\x00")
	for i := 0; i < len(entries); i++ {
		e := entries[i]
		kind, rest, _ := strings.Cut(e, " ")
		var f File
		switch kind {
		case "#":
			readBranch(rest, out)
			continue
		case "1", "u":
			n := 8
			if kind == "u" {
				n = 10
			}
			parts := strings.SplitN(rest, " ", n)
			if len(parts) < n || len(parts[0]) != 2 {
				continue
			}
			f = File{Path: parts[n-1], Staged: letter(parts[0][0]), Changed: letter(parts[0][1])}
		case "2":
			parts := strings.SplitN(rest, " ", 9)
			if len(parts) < 9 || len(parts[0]) != 2 {
				continue
			}
			f = File{Path: parts[8], Staged: letter(parts[0][0]), Changed: letter(parts[0][1])}
			if i++; i < len(entries) {
				f.From = entries[i]
			}
		case "?":
			f = File{Path: rest, Changed: "?"}
		default:
			continue
		}
		if len(out.Files) == maxFiles {
			out.Truncated = true
			return
		}
		f.Path = strings.ToValidUTF8(f.Path, "\uFFFD")
		out.Files = append(out.Files, f)
	}
}

// letter turns the dot that stands for "no change" into nothing.
func letter(c byte) string {
	if c == '.' {
		return ""
	}
	return string(rune(c))
}

// readBranch reads one header line of a status.
func readBranch(rest string, out *Result) {
	name, value, _ := strings.Cut(rest, " ")
	switch name {
	case "branch.oid":
		if value != "(initial)" {
			out.Hash = value
		}
	case "branch.head":
		out.Branch = value
	case "branch.upstream":
		out.Upstream = value
	case "branch.ab":
		// Both are there or the line is not: "+2 -1".
		_, _ = fmt.Sscanf(value, "+%d -%d", &out.Ahead, &out.Behind)
	}
}

// patch are the options of every command that shows one.
var patch = []string{"--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty"}

// diff shows what is not committed, staged or not; with nothing of that kind
// it shows the last commit, so that a review after a push has something to
// review. Of says what was compared.
func (r *repository) diff(ctx context.Context, in request, out *Result) error {
	_, hash, err := r.head(ctx)
	if err != nil {
		return err
	}
	base := in.Base
	if base != "" {
		if base, err = r.resolve(ctx, base); err != nil {
			return err
		}
	}
	var what []string
	switch {
	case in.Staged && in.Base != "":
		what, out.Of = []string{"--cached", base}, in.Base+" and the index"
	case in.Staged && hash != "":
		what, out.Of = []string{"--cached", "HEAD"}, "the last commit and the index"
	case in.Staged, hash == "":
		what, out.Of = []string{"--cached"}, "the last commit and the index"
	case in.Base != "":
		what, out.Of = []string{base}, in.Base+" and the workspace"
	default:
		what, out.Of = []string{"HEAD"}, "the last commit and the workspace"
	}
	if err := r.patch(ctx, what, in.Paths, out); err != nil {
		return err
	}
	if out.Diff != "" || len(out.Hidden) > 0 || in.Staged || in.Base != "" || hash == "" {
		return nil
	}
	parent, err := r.line(ctx, "rev-parse", "--quiet", "--verify", "HEAD^1")
	if err != nil {
		return err
	}
	if parent == "" {
		// The empty tree, whose name depends on the repository's hash.
		if parent, err = r.line(ctx, "hash-object", "-t", "tree", "--stdin"); err != nil {
			return err
		}
	}
	out.Of = "the last commit and the one before"
	return r.patch(ctx, []string{parent, "HEAD"}, in.Paths, out)
}

// patch fills in Diff, Files and Output.
func (r *repository) patch(ctx context.Context, what, paths []string, out *Result) error {
	args := slices.Concat([]string{"diff"}, patch)
	files, added, removed, err := r.numstat(ctx, pathspec(slices.Concat(args, []string{"--numstat", "-z"}, what), paths)...)
	if err != nil {
		return err
	}
	sides := what
	if len(what) == 1 && what[0] != gitsource.InIndex {
		sides = []string{what[0], gitsource.InWorkTree}
	}
	if out.Hidden, err = r.hidden(ctx, files, sides...); err != nil {
		return err
	}
	out.Binary = binaryOf(files)
	text, err := r.must(ctx, without(pathspec(slices.Concat(args, []string{"-p"}, what), paths), out.Hidden)...)
	if err != nil {
		return err
	}
	out.Diff, out.Truncated = fit(r.shown(text), maxText)
	out.Output = fmt.Sprintf("%d files changed, %d lines added, %d removed", len(files), added, removed)
	if len(files) > maxFiles {
		files, out.Truncated = files[:maxFiles], true
	}
	for i := range files { // an answer is UTF-8, which names need not be
		f := &files[i]
		f.Path, f.From = strings.ToValidUTF8(f.Path, "\uFFFD"), strings.ToValidUTF8(f.From, "\uFFFD")
	}
	out.Files = files
	return nil
}

// shown returns a patch as the caller sees it.
func (r *repository) shown(text string) string {
	if r.hides == nil {
		return text
	}
	return gitexec.WithoutIndex(text)
}

// numstat runs a git that lists changed files with --numstat -z.
func (r *repository) numstat(ctx context.Context, args ...string) (files []File, added, removed int, err error) {
	a, err := r.git(ctx, args...)
	switch {
	case err != nil:
		return nil, 0, 0, err
	case a.Code != 0:
		return nil, 0, 0, gitexec.Fatal(r.operation, a)
	case a.Cut && r.hides != nil:
		return nil, 0, 0, refuse("too many files changed to see which of them models may read", "name paths")
	}
	files, added, removed = readNumstat(a.Out)
	return files, added, removed, nil
}

// binaryOf returns the files of which git shows no lines.
func binaryOf(files []File) (paths []string) {
	for _, f := range files {
		if f.Binary && len(paths) < 100 {
			paths = append(paths, strings.ToValidUTF8(f.Path, "\uFFFD"))
		}
	}
	return paths
}

// hidden returns the names of changed files, old and new, that the caller does
// not see, relative to the top of the work tree. sides are what is compared.
func (r *repository) hidden(ctx context.Context, files []File, sides ...string) ([]string, error) {
	var names []string
	for _, f := range files {
		if names = append(names, f.Path); f.From != "" {
			names = append(names, f.From)
		}
	}
	return r.unseen(ctx, names, sides...)
}

// without excludes names, relative to the top of the work tree, from a command
// that ends with paths.
func without(args, names []string) []string {
	for _, name := range names {
		args = append(args, ":(exclude,top,literal)"+name)
	}
	return args
}

// readNumstat parses --numstat -z: added, removed and path between tabs; a
// rename leaves the path empty and adds the old and the new one.
func readNumstat(text string) (files []File, added, removed int) {
	entries := strings.Split(text, "\x00")
	for i := 0; i < len(entries); i++ {
		parts := strings.SplitN(entries[i], "\t", 3)
		if len(parts) != 3 {
			continue
		}
		f := File{Path: parts[2]}
		f.Binary = parts[0] == "-"
		f.Added, _ = strconv.Atoi(parts[0])
		f.Removed, _ = strconv.Atoi(parts[1])
		if f.Path == "" && i+2 < len(entries) {
			f.From, f.Path = entries[i+1], entries[i+2]
			i += 2
		}
		added, removed = added+f.Added, removed+f.Removed
		files = append(files, f)
	}
	return files, added, removed
}

// log lists commits. With a format, git writes the output.
func (r *repository) log(ctx context.Context, in request, out *Result) error {
	if in.Limit == 0 {
		in.Limit = 20
	}
	from, err := r.resolve(ctx, cmp.Or(in.Base, "HEAD"))
	if err != nil {
		return err
	}
	args := []string{"log", "--no-color", "-z", "--format=%H%x09%an <%ae>%x09%aI%x09%s", "-n", strconv.Itoa(in.Limit), "--end-of-options", from}
	text, err := r.must(ctx, pathspec(args, in.Paths)...)
	if err != nil {
		return err
	}
	var b strings.Builder
	size, most := 0, maxText
	if in.Format != "" {
		most /= 2 // the other half is the output
	}
	for entry := range strings.SplitSeq(text, "\x00") {
		parts := strings.SplitN(strings.ToValidUTF8(entry, "\uFFFD"), "\t", 4)
		if len(parts) != 4 {
			continue
		}
		c := Commit{Hash: parts[0], Author: parts[1], Date: parts[2], Subject: textcut.Mark(parts[3], 400)}
		if size += 100 + 2*jsonSize(c.Author+c.Subject+c.Hash); size > most {
			out.Truncated = true
			break
		}
		out.Commits = append(out.Commits, c)
		fmt.Fprintf(&b, "%.10s %.10s %s\n", c.Hash, c.Date, c.Subject)
	}
	if in.Format == "" {
		out.Output = b.String()
		return nil
	}
	format := in.Format
	if strings.Contains(format, "%") {
		format = "tformat:" + format // otherwise the repository's configuration may give it another meaning
	}
	args = []string{"log", "--no-color", "--no-decorate", "--format=" + format, "-n", strconv.Itoa(in.Limit), "--end-of-options", from}
	if text, err = r.must(ctx, pathspec(args, in.Paths)...); err != nil {
		return err
	}
	var cut bool
	out.Output, cut = fit(text, maxText/2)
	out.Truncated = out.Truncated || cut
	return nil
}

// show shows one commit.
func (r *repository) show(ctx context.Context, in request, out *Result) error {
	var err error
	if out.Hash, err = r.resolve(ctx, cmp.Or(in.Ref, "HEAD")); err != nil {
		return err
	}
	head, err := r.must(ctx, "show", "--no-patch", "--no-color", "--format=medium", out.Hash)
	if err != nil {
		return err
	}
	files, _, _, err := r.numstat(ctx, append(slices.Concat([]string{"show", "--format=", "--numstat", "-z"}, patch), out.Hash)...)
	if err != nil {
		return err
	}
	sides := []string{out.Hash}
	if r.hides != nil {
		parents, err := r.must(ctx, "rev-parse", out.Hash+"^@")
		if err != nil {
			return err
		}
		sides = append(sides, strings.Fields(parents)...)
	}
	if out.Hidden, err = r.hidden(ctx, files, sides...); err != nil {
		return err
	}
	out.Binary = binaryOf(files)
	args := append(slices.Concat([]string{"show", "--format=", "-p"}, patch), out.Hash)
	if len(out.Hidden) > 0 { // without a path git shows merges in another way
		args = without(append(args, "--", ":(top)"), out.Hidden)
	}
	text, err := r.must(ctx, args...)
	if err != nil {
		return err
	}
	out.Output, _ = fit(head, maxText/8)
	out.Diff, out.Truncated = fit(r.shown(text), maxText)
	return nil
}

// fit cuts text to size bytes of JSON, after a line, and replaces what is not
// UTF-8.
func fit(text string, size int) (string, bool) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if jsonSize(text) <= size {
		return text, false
	}
	n, end := 0, 0
	for line := range strings.Lines(text) {
		if n += jsonSize(line); n > size {
			break
		}
		end += len(line)
	}
	return text[:end], true
}

// jsonSize returns how many bytes s takes in JSON, without quotes.
func jsonSize(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r':
			n++
		case c < 0x20 || c == '<' || c == '>' || c == '&':
			n += 5
		}
	}
	return n
}
