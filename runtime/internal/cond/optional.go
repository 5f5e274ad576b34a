package cond

import (
	"reflect"

	"github.com/dop251/goja/ast"
	js "github.com/dop251/goja/token"
)

var expressionType = reflect.TypeFor[ast.Expression]()

// makeOptional rewrites every path and call of a program as if it were written with
// "?.", in place: a part of a missing value, and a call on it, is undefined and not an
// exception. Targets of assignments and constructors stay, because they cannot be
// optional.
func makeOptional(prg *ast.Program) { rewriteParts(reflect.ValueOf(prg).Elem()) }

// rewriteParts rewrites the expressions within a node.
func rewriteParts(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		switch {
		case v.IsNil():
		case v.Type() == expressionType && v.CanSet():
			v.Set(reflect.ValueOf(rewrite(v.Interface().(ast.Expression))))
		default:
			rewriteParts(v.Elem())
		}
	case reflect.Pointer:
		if into, ok := v.Interface().(*ast.ForIntoExpression); ok {
			rewriteTarget(into.Expression)
		} else if !v.IsNil() && v.Elem().Kind() == reflect.Struct {
			rewriteParts(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "DeclarationList" && name != "File" {
				rewriteParts(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			rewriteParts(v.Index(i))
		}
	}
}

// rewrite returns an expression with optional paths.
func rewrite(e ast.Expression) ast.Expression {
	switch t := e.(type) {
	case *ast.DotExpression, *ast.BracketExpression, *ast.CallExpression:
		rewriteLink(e)
		return &ast.OptionalChain{Expression: e}
	case *ast.OptionalChain:
		rewriteLink(t.Expression)
	case *ast.AssignExpression:
		rewriteTarget(t.Left)
		t.Right = rewrite(t.Right)
	case *ast.UnaryExpression:
		if t.Operator == js.INCREMENT || t.Operator == js.DECREMENT || t.Operator == js.DELETE {
			rewriteTarget(t.Operand)
		} else {
			t.Operand = rewrite(t.Operand)
		}
	case *ast.NewExpression:
		rewriteTarget(t.Callee)
		rewriteParts(reflect.ValueOf(t.ArgumentList))
	case *ast.TemplateLiteral:
		rewriteTarget(t.Tag)
		rewriteParts(reflect.ValueOf(t.Expressions))
	case nil:
	default:
		if v := reflect.ValueOf(e); v.Kind() == reflect.Pointer && !v.IsNil() {
			rewriteParts(v.Elem())
		}
	}
	return e
}

// rewriteLink makes the part before a link of a path optional, and all before it.
func rewriteLink(e ast.Expression) {
	switch t := e.(type) {
	case *ast.DotExpression:
		t.Left = before(t.Left)
	case *ast.BracketExpression:
		t.Left = before(t.Left)
		t.Member = rewrite(t.Member)
	case *ast.CallExpression:
		t.Callee = before(t.Callee)
		rewriteParts(reflect.ValueOf(t.ArgumentList))
	case *ast.Optional:
		t.Expression = before(t.Expression).(*ast.Optional).Expression
	}
}

// before returns what stands before a link, as optional.
func before(e ast.Expression) ast.Expression {
	switch t := e.(type) {
	case *ast.SuperExpression:
		return e
	case *ast.Optional:
		rewriteLinkOrWhole(&t.Expression)
		return t
	}
	rewriteLinkOrWhole(&e)
	return &ast.Optional{Expression: e}
}

// rewriteLinkOrWhole rewrites a part of a path in place, and any other expression as a
// whole.
func rewriteLinkOrWhole(e *ast.Expression) {
	switch (*e).(type) {
	case *ast.DotExpression, *ast.BracketExpression, *ast.CallExpression:
		rewriteLink(*e)
	default:
		*e = rewrite(*e)
	}
}

// rewriteTarget rewrites the expressions within a target, but not the target itself.
func rewriteTarget(e ast.Expression) {
	switch t := e.(type) {
	case *ast.DotExpression:
		t.Left = rewrite(t.Left)
	case *ast.BracketExpression:
		t.Left, t.Member = rewrite(t.Left), rewrite(t.Member)
	case nil:
	default:
		if v := reflect.ValueOf(e); v.Kind() == reflect.Pointer && !v.IsNil() {
			rewriteParts(v.Elem())
		}
	}
}
