// Package config is what an operator SETTLES for the process: one file of the
// user's, the environment above it, flags above that.
//
// The file is never read from a project: a repository that could name a server
// and the variable of a key would have the key sent there. Secrets are not in
// it either; it names the environment variables or files that hold them.
//
// Every setting has a key, its path in the file: "serve.listen". In the
// environment the same setting is SENTINEL_SERVE_LISTEN. [Load] says of every
// value where it came from.
package config
