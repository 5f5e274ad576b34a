package cond

import (
	"github.com/dop251/goja/ast"
)

// What other engines of JavaScript have and an expression has not, with what to use. As paths
// and calls are optional, it would be undefined without an error; so it is a mistake of the
// source, for [Evaluator.Check] and for an evaluation alike.

const group = "$list.reduce((all, x) => ({...all, [x.key]: [...(all[x.key] ?? []), x]}), {})"

// missingFunctions are functions of a global object.
var missingFunctions = map[string]string{
	"Object.groupBy":  group,
	"Map.groupBy":     group,
	"Array.fromAsync": "Array.from",
	"RegExp.escape":   `text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')`,
	"Math.sumPrecise": "$list.reduce((sum, x) => sum + x, 0)",
	"Math.f16round":   "Math.fround",
}

// missingMethods are methods of values. Data has no functions, so a call of such a name is
// never one of a field.
var missingMethods = map[string]string{
	"group": group, "groupBy": group, "groupToMap": group, "groupByToMap": group,
	"isWellFormed": "true: texts are well-formed", "toWellFormed": "the text: texts are well-formed",
	"getOrInsert": "$map.get(key) ?? value", "getOrInsertComputed": "$map.get(key) ?? value",
	"hasOwnProperty": "Object.hasOwn($x, 'name') or 'name' in $x", "propertyIsEnumerable": "Object.hasOwn($x, 'name')",
	"isPrototypeOf": "typeof or Array.isArray($x)", "toLocaleString": "toFixed or String($x)",
}

// iterators are methods whose results have next only. missingHelpers are methods that such a
// result has elsewhere.
var (
	iterators      = set("values keys entries matchAll")
	missingHelpers = set("drop every filter find flatMap forEach map reduce some take toArray")
)

// missingGlobals are names of browsers, Node.js and newer standards.
var missingGlobals = map[string]string{
	"structuredClone": "JSON.parse(JSON.stringify($x))",
	"fetch":           "a shell step with curl, whose output is a variable",
	"XMLHttpRequest":  "a shell step with curl, whose output is a variable",
	"setTimeout":      "a step of type wait", "setInterval": "a loop with a step of type wait",
	"setImmediate": "a step of type wait", "queueMicrotask": "a call",
	"console": "the value of the expression, which sentinel trace shows",
	"atob":    "a shell step with base64", "btoa": "a shell step with base64", "Buffer": "a shell step with base64",
	"TextEncoder": "encodeURIComponent", "TextDecoder": "decodeURIComponent",
	"URL": "text.split and decodeURIComponent", "URLSearchParams": "text.split and decodeURIComponent",
	"crypto": "a shell step with sha256sum or uuidgen", "Intl": "toFixed and padStart",
	"Temporal": "$NOW, a text in RFC 3339", "performance": "$ELAPSED_MS", "Iterator": "Array.from",
}

// unknownName returns the message and the hint for a name without "$" that no condition has.
func unknownName(name string) (message, hint string) {
	if use, ok := missingGlobals[name]; ok {
		return missingText(name, use), ""
	}
	return "unknown name " + quote(name), hintFor(name)
}

// missingText is the message for everything of this file.
func missingText(name, use string) string { return name + " is not here: use " + use }

// member reports a function that a global object lacks.
func (in *inspector) member(n *ast.DotExpression) {
	object, ok := withoutOptional(n.Left).(*ast.Identifier)
	if !ok {
		return
	}
	name := object.Name.String() + "." + n.Identifier.Name.String()
	if use, ok := missingFunctions[name]; ok {
		in.fail(object.Idx, "", "%s", missingText(name, use))
	}
}

// call reports the call of a method that a value lacks.
func (in *inspector) call(n *ast.CallExpression) {
	callee, ok := withoutOptional(n.Callee).(*ast.DotExpression)
	if !ok {
		return
	}
	in.member(callee) // which says more than the name of a method
	name, at := callee.Identifier.Name.String(), callee.Identifier.Idx
	if use, ok := missingMethods[name]; ok {
		in.fail(at, "", "%s", missingText(name, use))
	}
	made, ok := withoutOptional(callee.Left).(*ast.CallExpression)
	if !ok || !missingHelpers[name] {
		return
	}
	maker, ok := withoutOptional(made.Callee).(*ast.DotExpression)
	if !ok {
		return
	}
	iterator := maker.Identifier.Name.String()
	if of, ok := withoutOptional(maker.Left).(*ast.Identifier); ok && of.Name == "Object" {
		return // its functions of these names return lists
	}
	if iterators[iterator] {
		in.fail(at, "", "%s", missingText(name+" of the iterator that "+iterator+" returns", "Array.from(x."+iterator+"(...))."+name))
	}
}

// withoutOptional returns what "?." makes optional.
func withoutOptional(e ast.Expression) ast.Expression {
	for {
		switch t := e.(type) {
		case *ast.Optional:
			e = t.Expression
		case *ast.OptionalChain:
			e = t.Expression
		default:
			return e
		}
	}
}
