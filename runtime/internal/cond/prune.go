package cond

import (
	"reflect"

	"github.com/dop251/goja/ast"
	js "github.com/dop251/goja/token"
)

var expressionType = reflect.TypeFor[ast.Expression]()

// prune replaces every path through a variable without a value by undefined, in
// place. The variable itself stays: it is a parameter without an argument.
func prune(prg *ast.Program, unset map[string]bool) {
	pruneAll(reflect.ValueOf(prg).Elem(), unset)
}

func pruneAll(v reflect.Value, unset map[string]bool) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		if v.Type() == expressionType && v.CanSet() {
			if e := v.Interface().(ast.Expression); unsetPath(e, unset) {
				at := e.Idx0()
				v.Set(reflect.ValueOf(ast.Expression(&ast.UnaryExpression{
					Operator: js.VOID, Idx: at,
					Operand: &ast.NumberLiteral{Idx: at, Literal: "0", Value: int64(0)},
				})))
				return
			}
		}
		pruneAll(v.Elem(), unset)
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct {
			pruneAll(v.Elem(), unset)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "DeclarationList" && name != "File" {
				pruneAll(v.Field(i), unset)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			pruneAll(v.Index(i), unset)
		}
	}
}

// unsetPath reports whether e is a path $name.a[b] with at least one member and
// $name in unset. A "?." in the path is allowed only if its optional chain ends
// in e. Otherwise a call at the end of the chain would fail instead of being
// skipped.
func unsetPath(e ast.Expression, unset map[string]bool) bool {
	members := 0
	open := false // inside an optional chain that ends in e
	for {
		switch t := e.(type) {
		case *ast.DotExpression:
			e = t.Left
			members++
		case *ast.BracketExpression:
			e = t.Left
			members++
		case *ast.OptionalChain:
			e = t.Expression
			open = true
		case *ast.Optional:
			if !open {
				return false
			}
			e = t.Expression
		case *ast.Identifier:
			return members > 0 && unset[t.Name.String()]
		default:
			return false
		}
	}
}
