// Package config loads the settings of the host from the user's configuration
// file, the environment and flags. Later sources override earlier ones.
//
// The file is never read from a project: a repository that could name a server
// and the variable of a key would have the key sent there. Secrets are not in
// it either; it names the environment variables or files that contain them.
//
// Every setting has a key, its path in the file: "serve.listen". In the
// environment the same setting is SENTINEL_SERVE_LISTEN. [Load] records the
// source of every value.
package config
