// Package data implements the commands on documents, which steps, models and users
// store: data/create, read, update, delete and list.
//
// Documents live in the store of the runs, reached through the call's Records
// alone. A write is therefore committed together with the call's result: it is
// never in doubt after a crash and never repeated.
//
// The collection "sentinels" is a read-only view of the host's definitions, so that
// they can be queried and exported like documents.
package data
