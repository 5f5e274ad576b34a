package cond

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// program is a compiled condition: a script whose value is a function of the
// variables. It can be used by any VM and is safe for concurrent use.
type program struct {
	code   *goja.Program
	params []string // the variables, in the order of the function's parameters
}

// source is a source that was parsed and checked.
type source struct {
	src   string
	names []string // the variables it uses
}

// parseSource parses a source and reports the first mistake. The parser is
// recursive, so a source that is not of the fast path must only be parsed in a
// child.
func parseSource(src string) (*source, *abi.Error) {
	// In brackets, a single expression is a list of one element. A source that
	// closes the bracket itself, such as "1],[2", is something else.
	prg, err := parse(src, "[\n", "\n]")
	if err != nil {
		return nil, err
	}
	list := onlyList(prg, len(src)+len("[\n"))
	if list == nil || len(list.Value) > 1 {
		return nil, errAtPosition(position{1, 1}, "want one expression")
	}
	if len(list.Value) == 0 {
		return nil, errAtPosition(position{1, 1}, "empty")
	}
	in := inspector{src: src, shift: len("[\n"), declared: map[string]bool{}}
	in.expression(list.Value[0])
	if err := in.finish(); err != nil {
		return nil, err
	}
	return &source{src: src, names: in.names}, nil
}

// onlyList returns the list between the brackets that parseSource has added,
// nil if the source has changed their meaning.
func onlyList(prg *ast.Program, end int) *ast.ArrayLiteral {
	if len(prg.Body) != 1 {
		return nil
	}
	statement, _ := prg.Body[0].(*ast.ExpressionStatement)
	if statement == nil {
		return nil
	}
	list, _ := statement.Expression.(*ast.ArrayLiteral)
	if list == nil || list.LeftBracket != 1 || int(list.RightBracket) != end+2 {
		return nil
	}
	for _, v := range list.Value {
		if _, spread := v.(*ast.SpreadElement); v == nil || spread {
			return nil
		}
	}
	return list
}

// compile compiles a parsed source, with optional paths: see makeOptional. That cannot be
// done safely on the text.
func (t *source) compile() (*program, *abi.Error) {
	list := make([]string, len(t.names))
	for i, name := range t.names {
		list[i] = "$" + name
	}
	prg, err := parse(t.src, "(function("+strings.Join(list, ",")+"){return (\n", "\n)})")
	if err != nil {
		return nil, err
	}
	makeOptional(prg)
	code, cerr := goja.CompileAST(prg, true)
	if cerr != nil {
		return nil, syntax(t.src, cerr)
	}
	return &program{code: code, params: t.names}, nil
}

// parse parses src between a line before and a line after it. Source maps are
// disabled: a comment could name one, and the parser would read that file.
func parse(src, before, after string) (prg *ast.Program, err *abi.Error) {
	defer func() {
		if r := recover(); r != nil {
			err = errf(abi.Internal, "parse: %v", r)
		}
	}()
	prg, perr := parser.ParseFile(nil, "", before+src+after, 0, parser.WithDisableSourceMaps)
	if perr != nil {
		return nil, syntax(src, perr)
	}
	return prg, nil
}

// syntax converts an error of the parser or compiler to one about src, which
// begins on the second line of the parsed text.
func syntax(src string, err error) *abi.Error {
	p, text := position{1, 1}, err.Error()
	var list parser.ErrorList
	var compile *goja.CompilerSyntaxError
	switch {
	case errors.As(err, &list) && len(list) > 0:
		p = position{list[0].Position.Line - 1, list[0].Position.Column}
		text = list[0].Message
	case errors.As(err, &compile) && compile.File != nil:
		at := compile.File.Position(compile.Offset)
		p = position{at.Line - 1, at.Column}
		text = compile.Message
	}
	last := locate(src, len(src))
	if p.line < 1 {
		p = position{1, 1}
	}
	if p.line > last.line || p == last {
		p, text = last, "unexpected end"
	}
	text = strings.TrimPrefix(text, "SyntaxError: ")
	return errAtPosition(p, "%s", textcut.Mark(lower(text), maxMessage))
}

func lower(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// errAtIndex returns the error of a mistake at an index of a parsed file.
func errAtIndex(src string, shift int, at file.Idx, format string, args ...any) *abi.Error {
	return errAt(src, int(at)-1-shift, "%s", fmt.Sprintf(format, args...))
}
