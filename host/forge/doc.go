// Package forge opens pull requests for the branches of tickets, and keeps a record of each.
//
// [Forge] is what a forge must be able to do. [Client] speaks the part of the REST API that
// GitHub, Gitea and Forgejo share. Without a configured forge a [Service] keeps the record
// alone, so that work ends in a branch.
//
// # Concurrency
//
// A Client and a Service are safe for concurrent use.
package forge
