package lazyregexp_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// computed are the files whose patterns are made while the program runs. Tests of
// their packages match messages against all of them.
var computed = []string{"runtime/retry/rule.go"}

// TestEveryPatternOfTheTreeCompiles finds invalid patterns, which the start of the
// program no longer finds.
func TestEveryPatternOfTheTreeCompiles(t *testing.T) {
	const root = "../.."
	constants := map[string]map[string]ast.Expr{} // by folder and name
	calls := map[string][]*ast.CallExpr{}         // by file
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules" || path != root && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".."):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		dir := filepath.Dir(path)
		if constants[dir] == nil {
			constants[dir] = map[string]ast.Expr{}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, id := range n.Names {
					if i < len(n.Values) {
						constants[dir][id.Name] = n.Values[i]
					}
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.SelectorExpr)
				if ok && f.Sel.Name == "New" && len(n.Args) == 1 {
					if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "lazyregexp" {
						calls[name] = append(calls[name], n)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) < 20 {
		t.Errorf("only %d files with patterns found", len(calls))
	}
	for file, list := range calls {
		if slices.Contains(computed, file) {
			continue
		}
		for _, call := range list {
			text, ok := textOf(call.Args[0], constants[filepath.Join(root, filepath.Dir(file))])
			if !ok {
				t.Errorf("%s: the pattern of a lazyregexp.New is not constant", file)
				continue
			}
			if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// textOf returns the value of a constant text.
func textOf(e ast.Expr, constants map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		v := constant.MakeFromLiteral(e.Value, e.Kind, 0)
		return constant.StringVal(v), v.Kind() == constant.String
	case *ast.Ident:
		if c := constants[e.Name]; c != nil {
			return textOf(c, constants)
		}
	case *ast.BinaryExpr:
		a, okA := textOf(e.X, constants)
		b, okB := textOf(e.Y, constants)
		return a + b, okA && okB && e.Op == token.ADD
	}
	return "", false
}

func TestInvalidPatternPanicsWhenUsed(t *testing.T) {
	re := lazyregexp.New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("an invalid pattern was used without a panic")
		}
	}()
	re.MatchString("x")
}

func TestOneUseAtATimeCompiles(t *testing.T) {
	re := lazyregexp.New(`^(\d+)-(\d+)$`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := re.FindStringSubmatch("12-34"); !slices.Equal(got, []string{"12-34", "12", "34"}) {
				t.Errorf("submatches %q", got)
			}
		})
	}
	wg.Wait()
	if re.MatchString("12-x") {
		t.Error("12-x matches")
	}
}
