// Package sentinels is WHAT is run: the vocabulary of the product and the
// format of a definition, strict to read and stable to write.
//
// A [Definition] is the JSON of one sentinel, a loop of steps. [Decode] reads
// one and reports every [Problem] it has, with its place in the file. The
// package knows no step type by name: what fields a type has comes from the
// manifests of installed plugins, as a [TypeSet].
package sentinels
