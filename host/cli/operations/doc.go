// Package operations has the verbs of the process: the server, its configuration and
// token, diagnosis, repair, measurements, and the program itself.
package operations
