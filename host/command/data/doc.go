// Package data is the part of the HOST process that keeps documents for steps,
// models and people: data/create, read, update, delete and list.
//
// Documents live in the store of the runs, reached through the call's Records
// alone. A write is therefore durable together with the call's answer: it is
// never in doubt after a crash and never happens twice.
//
// The collection "sentinels" is not kept here. It shows the definitions of the
// host, read-only, so that they can be queried and exported like all else.
package data
