// Package plugin holds the commands on STEP PLUGINS: which step types there
// are, who provides them, what they ask for and what they are allowed.
package plugin
