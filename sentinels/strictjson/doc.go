// Package strictjson reads JSON that comes from other people: files, request
// bodies, webhooks, events, plugin manifests, a model's tool arguments.
//
// encoding/json keeps the last of two equal keys, matches keys without regard
// to case, and replaces what is not UTF-8. Two readers of one text can therefore
// see two different values, which has been used to get past checks (see
// CVE-2026-27896). This package refuses such a text and names the place: line,
// column and path.
//
// What it refuses, besides text that is not JSON: a byte order mark, text after
// the value, duplicate keys (compared as decoded, so "\u0061" is "a"), bytes that
// are not UTF-8, half of a surrogate pair, numbers that a float64 cannot hold,
// and a text above the [Limits]. [Decode] also refuses keys that the Go type does
// not have, in the case that they are written; [DecodeOpen] ignores them, and so does
// [DecodeForeign], which replaces what is not UTF-8 in answers of other programs.
//
// There are three ways to read a text:
//
//   - [Check], [Decode], [DecodeOpen], [DecodeForeign], [Members], [Any]: a Go value, or the first
//     problem;
//   - [Parse] and [ParseWithComments]: a syntax tree with the place of every key and
//     value and with every problem, for texts that people edit;
//   - [Cursor], [EachMember] and [EachItem]: parts of a value that has been checked before, without
//     building anything from the rest, for values of any size within the process.
//
// # Concurrency
//
// All functions are safe for concurrent use. A [Cursor] is not, nor is a [Tree]: its positions
// are indexed when the first of them is needed.
//
// It is a thin layer over github.com/go-json-experiment/json, the public form of
// what is to become encoding/json/v2; that module is imported only here.
package strictjson
