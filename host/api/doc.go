// Package api serves the commands of the host over HTTP.
//
// Every operation is a command. POST /v1/commands/{name...} calls any of them;
// the resources under /v1 are the same commands as REST resources, with revisions
// as ETags. One table, [API.Routes], lists all routes: the guard refuses other
// requests, and the OpenAPI document is generated from it. The requirements are
// numbered in ../API.md.
//
// [New] creates the API. [API.Handler] serves it to any program that can
// connect, [API.Local] serves callers whose user the kernel has checked, and
// [API.Listen] opens a listener for the former.
package api
