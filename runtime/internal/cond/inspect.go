package cond

import (
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	js "github.com/dop251/goja/token"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// inspector walks a parsed condition. It collects the variables and finds what
// the parser accepts and a condition must not do. It ignores scopes: a name
// that is declared anywhere is known everywhere, and using it outside its scope
// is an exception at run time.
type inspector struct {
	src      string
	shift    int // bytes before src in the parsed text
	names    []string
	free     []*ast.Identifier // names without "$", in order of use
	declared map[string]bool
	inside   int // functions around the current node
	err      *abi.Error
}

func (in *inspector) fail(at file.Idx, hint, format string, args ...any) {
	if in.err == nil {
		in.err = withHint(errAtIndex(in.src, in.shift, at, format, args...), hint)
	}
}

// finish reports unknown names. It is called after the walk, when all
// declarations are known.
func (in *inspector) finish() *abi.Error {
	for _, id := range in.free {
		name := id.Name.String()
		if !in.declared[name] && !globals[name] {
			message, hint := unknownName(name)
			in.fail(id.Idx, hint, "%s", message)
		}
	}
	return in.err
}

func (in *inspector) expression(e ast.Expression) { in.walk(reflect.ValueOf(e)) }

// walk visits a node and all nodes below it, by reflection, because there are
// many similar types. [inspector.node] handles those that differ.
func (in *inspector) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			in.walk(v.Elem())
		}
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct || in.err != nil {
			return
		}
		before := in.inside
		if in.node(v.Interface()) {
			in.fields(v.Elem())
		}
		in.inside = before
	case reflect.Struct:
		in.fields(v)
	case reflect.Slice:
		for i := range v.Len() {
			in.walk(v.Index(i))
		}
	}
}

func (in *inspector) fields(v reflect.Value) {
	for i := range v.NumField() {
		// Declaration lists have the same nodes as the statements.
		if name := v.Type().Field(i).Name; name != "DeclarationList" && name != "File" {
			in.walk(v.Field(i))
		}
	}
}

// node handles one node and reports whether to walk its fields.
func (in *inspector) node(n any) bool {
	switch n := n.(type) {
	case *ast.Identifier:
		in.use(n)
	case *ast.PropertyShort:
		in.use(&n.Name)
		return false
	case *ast.PropertyKeyed:
		if n.Computed {
			in.expression(n.Key)
		}
		in.expression(n.Value)
		return false
	case *ast.DotExpression:
		in.member(n)
		if id, ok := n.Left.(*ast.Identifier); ok && id.Name == "Math" && n.Identifier.Name == "random" {
			in.fail(n.Identifier.Idx, "use $iteration, or a step of type shell that prints a random number", "no Math.random: a condition must give the same answer when it is replayed")
		}
		in.expression(n.Left)
		return false
	case *ast.FieldDefinition:
		if n.Computed {
			in.expression(n.Key)
		}
		in.inside++
		in.expression(n.Initializer)
		return false
	case *ast.MethodDefinition:
		if n.Computed {
			in.expression(n.Key)
		}
		in.walk(reflect.ValueOf(n.Body))
		return false
	case *ast.Binding:
		in.declare(n.Target)
		in.expression(n.Initializer)
		return false
	case *ast.ParameterList:
		in.declare(n.Rest)
		in.walk(reflect.ValueOf(n.List))
		return false
	case *ast.CatchStatement:
		in.declare(n.Parameter)
		in.walk(reflect.ValueOf(n.Body))
		return false
	case *ast.ForDeclaration:
		in.declare(n.Target)
		return false
	case *ast.FunctionLiteral:
		in.function(n.Function, n.Async, n.Name)
		in.walk(reflect.ValueOf(n.ParameterList))
		in.walk(reflect.ValueOf(n.Body))
		return false
	case *ast.ArrowFunctionLiteral:
		in.function(n.Start, n.Async, nil)
	case *ast.ClassLiteral:
		in.declareName(n.Name)
		in.expression(n.SuperClass)
		in.walk(reflect.ValueOf(n.Body))
		return false
	case *ast.LabelledStatement:
		in.walk(reflect.ValueOf(n.Statement))
		return false
	case *ast.BranchStatement, *ast.MetaProperty:
		return false
	case *ast.AwaitExpression:
		in.fail(n.Await, wordHints["await"], "an expression cannot wait")
	case *ast.AssignExpression:
		in.write(n.Left, "assign")
	case *ast.UnaryExpression:
		switch n.Operator {
		case js.INCREMENT, js.DECREMENT:
			in.write(n.Operand, "assign")
		case js.DELETE:
			in.write(n.Operand, "delete")
		}
	case *ast.NumberLiteral:
		in.number(n)
	case *ast.CallExpression:
		in.call(n)
	case *ast.RegExpLiteral:
		if len(n.Pattern) > maxPattern {
			in.fail(n.Idx, "", "regular expression of %d bytes, more than %d", len(n.Pattern), maxPattern)
		}
	}
	return in.err == nil
}

// number reports a whole number that the parser would round.
func (in *inspector) number(n *ast.NumberLiteral) {
	digits := strings.ReplaceAll(n.Literal, "_", "")
	if exact, ok := new(big.Int).SetString(digits, 0); ok && exact.CmpAbs(big.NewInt(maxExact)) > 0 {
		in.fail(n.Idx, "write "+n.Literal+"n, which is exact", "the number %s is over 2^53 and would be rounded", n.Literal)
	}
}

func (in *inspector) use(id *ast.Identifier) {
	name := id.Name.String()
	switch {
	case name == "" || name[0] != '$':
		in.free = append(in.free, id)
	case !isName(name[1:]):
		in.fail(id.Idx, "a variable is $ and letters, digits or _", "invalid variable name %q", name)
	case !slices.Contains(in.names, name[1:]):
		in.names = append(in.names, name[1:])
	}
}

func (in *inspector) function(at file.Idx, async bool, name *ast.Identifier) {
	if async {
		in.fail(at, "an expression has no promises", "an expression cannot be asynchronous")
	}
	in.declareName(name)
	in.inside++
}

func (in *inspector) declareName(id *ast.Identifier) {
	if id != nil {
		in.declare(id)
	}
}

// declare records the names of a binding pattern.
func (in *inspector) declare(target ast.Expression) {
	switch t := target.(type) {
	case nil:
	case *ast.Identifier:
		if name := t.Name.String(); name != "" && name[0] == '$' {
			in.fail(t.Idx, "names with $ are the sentinel's variables", "cannot declare %q", name)
		} else {
			in.declared[name] = true
		}
	case *ast.Binding:
		in.declare(t.Target)
		in.expression(t.Initializer)
	case *ast.AssignExpression:
		in.declare(t.Left)
		in.expression(t.Right)
	case *ast.SpreadElement:
		in.declare(t.Expression)
	case *ast.ArrayPattern:
		for _, e := range t.Elements {
			in.declare(e)
		}
		in.declare(t.Rest)
	case *ast.ObjectPattern:
		for _, p := range t.Properties {
			switch p := p.(type) {
			case *ast.PropertyShort:
				in.declare(&p.Name)
				in.expression(p.Initializer)
			case *ast.PropertyKeyed:
				if p.Computed {
					in.expression(p.Key)
				}
				in.declare(p.Value)
			}
		}
		in.declare(t.Rest)
	default:
		in.expression(t)
	}
}

// write reports a write outside any function, and every write to a variable: a
// condition must not change anything.
func (in *inspector) write(target ast.Expression, verb string) {
	hint := ""
	if verb == "assign" {
		hint = "write === to compare"
	}
	if in.inside == 0 {
		in.fail(target.Idx0(), hint, "an expression cannot %s", verb)
		return
	}
	for {
		switch t := target.(type) {
		case *ast.DotExpression:
			target = t.Left
			continue
		case *ast.BracketExpression:
			target = t.Left
			continue
		case *ast.Identifier:
			if name := t.Name.String(); name != "" && name[0] == '$' {
				in.fail(t.Idx, hint, "an expression cannot %s %q", verb, name)
			}
		}
		return
	}
}
