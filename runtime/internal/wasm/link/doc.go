// Package link checks what connects a module and its host, before anything is
// compiled: the names and types of its imports ([Imports]) and exports ([Exports]),
// and that its manifest asks for the permissions that its imports need
// ([Permissions]).
//
// The compiler would find most of these faults as well, with errors that help an
// author less.
package link
