package textcut_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// unmarked are the functions that shorten a text without a mark, and why that is right.
var unmarked = map[string]string{
	"host/checkpoint/diff.go diff":                                  "sets cut",
	"host/command/chat/announce.go announce":                        "sets truncated",
	"host/command/preview.go Excerpt":                               "appends the number of bytes",
	"host/command/call.go badPath":                                  "has a mark in the middle",
	"host/command/shell/classify.go ask":                            "a classifier gets the beginning of a line, and no one reads the copy",
	"host/llm/cassette/diverge.go around":                           "has marks on both sides",
	"host/ticket/learning/learn.go clean":                           "makes keys that failures are compared by",
	"host/ticket/learning/learn.go normalise":                       "makes keys that failures are compared by",
	"host/ticket/learning/prompt.go safeName":                       "the name of a source, which the prompt has in full beside it",
	"host/cli/run/do_continue.go previous":                          "has a line that says what is left out",
	"host/cli/run/live.go note":                                     "the end of a text under way, shown for a moment",
	"runtime/internal/execution/step/call_llm.go fitContext":        "ends with a line that says so",
	"runtime/internal/execution/step/call_llm.go LeaveOutArguments": "says how many bytes there were",
	"runtime/internal/execution/step/call_llm.go contextText":       "ends with ... (truncated)",
	"runtime/retry/ask.go cut":                                      "has a mark in the middle",
	"sdk/abitest/report.go brief":                                   "ends with ... and the number of bytes; the SDK imports nothing of the host",
}

// TestNoTextIsCutWithoutMark: a text that is shortened has the mark of [textcut.Mark], or its
// function is in the table of those that show in another way that something is missing.
func TestNoTextIsCutWithoutMark(t *testing.T) {
	const root = "../.."
	found := map[string]bool{}
	for _, top := range []string{"host", "internal", "plugins", "runtime", "sdk", "sentinels", "triggers"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "textcut.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			short, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || !cuts(f) {
					continue
				}
				key := filepath.ToSlash(short) + " " + f.Name.Name
				if found[key] = true; unmarked[key] == "" {
					t.Errorf("%s: %s shortens a text without a mark: use textcut.Mark or textcut.MarkStart, or set a field that says so and add %q to the table",
						files.Position(f.Pos()), f.Name.Name, key)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for key := range unmarked {
		if !found[key] {
			t.Errorf("%q is in the table and shortens no text: remove it", key)
		}
	}
}

// cuts reports whether a function calls Cut, or removes from a slice of a text the part of a
// character that slicing has left.
func cuts(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		of, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, _ := of.X.(*ast.Ident)
		switch {
		case pkg == nil:
		case pkg.Name == "textcut" && of.Sel.Name == "Cut":
			found = true
		case pkg.Name == "strings" && of.Sel.Name == "ToValidUTF8":
			ast.Inspect(call.Args[0], func(n ast.Node) bool {
				_, slice := n.(*ast.SliceExpr)
				found = found || slice
				return true
			})
		}
		return true
	})
	return found
}
