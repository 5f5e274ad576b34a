// Package plugin implements the commands on step plugins: list the step types and
// the plugins that provide them, and what these request and are granted.
package plugin
