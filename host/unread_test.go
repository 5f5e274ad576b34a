package host_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// telling are the names of fields and functions that say what went wrong or is not there.
var telling = regexp.MustCompile(`(?i)(problems?|warnings?|errors|failures?|dropped|skipped|omitted|truncated|damaged|lost|missed|unread|ignored|refused|rejected|discarded|incomplete|leftout)$`)

// unread are those that nothing reads outside of their package, and why that is right.
var unread = map[string]string{
	"host/command/rag Failures":       "an interface of the package, which calls it",
	"host/foldersync problems":        "compared, so that a change is reported",
	"host/ops/metrics Dropped":        "an input of the package, which shows it in /metrics",
	"host/ops/metrics Lost":           "as Dropped",
	"host/ops/metrics Refused":        "as Dropped",
	"runtime/internal/dispatch Lost":  "given to the package, which counts it in the record of a trigger",
	"runtime/internal/store Damaged":  "an option of the package",
	"runtime/internal/store Failures": "of an error whose text has the time of the first failure and the newest cause",
	"runtime/internal/store Lost":     "asked by methods of the result, for each bucket and key",
	"sentinels Ignored":               "called by the check of the package, which makes a warning of it",
	"sentinels Problem":               "in the text of the error",
}

// TestProblemsAreShown: what one part finds out about problems, warnings and what it left out is
// read by another part, or is in a JSON result. A value that nothing reads is one that no user sees.
func TestProblemsAreShown(t *testing.T) {
	if testing.Short() {
		t.Skip("checks the types of the whole module")
	}
	packages := listPackages(t)
	fset, exports := token.NewFileSet(), map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	found, read := map[string]string{}, map[string]bool{} // by place
	methods := map[string]string{}
	called := map[string]bool{} // methods, by interfaces
	for _, p := range packages {
		if p.Module == nil || !p.Module.Main || strings.Contains(p.ImportPath, "/sdk") { // what authors of plugins read
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
		conf := types.Config{Importer: imports, Error: func(error) {}, GoVersion: "go1.26"}
		if _, err := conf.Check(p.ImportPath, fset, files, info); err != nil {
			t.Fatalf("%s: %v", p.ImportPath, err)
		}
		place := func(o types.Object) string {
			at := fset.Position(o.Pos())
			return fmt.Sprintf("%s %s:%d %s", o.Pkg().Path(), filepath.Base(at.Filename), at.Line, o.Name())
		}
		for _, f := range files {
			written := writtenFields(f)
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.StructType:
					for _, field := range n.Fields.List {
						for _, name := range field.Names {
							if _, callback := field.Type.(*ast.FuncType); telling.MatchString(name.Name) && !callback && !inJSON(field) {
								found[place(info.Defs[name])] = name.Name
							}
						}
					}
				case *ast.FuncDecl:
					if n.Name.IsExported() && telling.MatchString(n.Name.Name) {
						found[place(info.Defs[n.Name])] = n.Name.Name
						if n.Recv != nil {
							methods[place(info.Defs[n.Name])] = n.Name.Name
						}
					}
				case *ast.Ident:
					o := info.Uses[n]
					if o == nil || o.Pkg() == nil || written[n] || !telling.MatchString(n.Name) {
						return true
					}
					if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()) {
						called[n.Name] = true
					}
					shows := strings.HasPrefix(p.ImportPath, module+"host/cli")
					if outside := o.Pkg().Path() != p.ImportPath; outside || shows || !o.Exported() {
						read[place(o)] = true
					}
				}
				return true
			})
		}
	}
	if len(found) < 20 {
		t.Errorf("only %d fields and functions were found", len(found))
	}
	spare := maps.Clone(unread)
	for at := range found {
		if read[at] || called[methods[at]] {
			continue
		}
		key := betweenNames.ReplaceAllString(strings.TrimPrefix(at, module), " ")
		delete(spare, key)
		if unread[key] == "" {
			t.Errorf("%s: nothing outside of its package reads it", at)
		}
	}
	for key := range spare {
		t.Errorf("%s is in the table, and is read or does not exist", key)
	}
}

// betweenNames is the place of a name behind its package.
var betweenNames = regexp.MustCompile(` \S+:\d+ `)

// writtenFields are the names of fields that are set: on the left of an assignment, in a composite
// literal, or counted.
func writtenFields(f *ast.File) map[*ast.Ident]bool {
	out := map[*ast.Ident]bool{}
	field := func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.SelectorExpr:
			out[e.Sel] = true
		case *ast.Ident:
			out[e] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				field(e)
			}
			// x.Problems = append(x.Problems, p) reads nothing.
			for i, e := range n.Rhs {
				if call, ok := e.(*ast.CallExpr); ok && len(call.Args) > 0 && i < len(n.Lhs) && types.ExprString(call.Args[0]) == types.ExprString(n.Lhs[i]) {
					field(call.Args[0])
				}
			}
		case *ast.IncDecStmt:
			field(n.X)
		case *ast.KeyValueExpr:
			field(n.Key)
		}
		return true
	})
	return out
}

// inJSON reports whether a field has a name in JSON.
func inJSON(f *ast.Field) bool {
	if f.Tag == nil {
		return false
	}
	name, ok := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Lookup("json")
	return ok && name != "-"
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// listPackages returns the packages of the module and those that they import, with their
// export data. Guests are other programs.
func listPackages(t *testing.T) (list []listedPackage) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module",
		"../runtime/...", "../triggers/...", "../sentinels/...", "../host/...", "../internal/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}
