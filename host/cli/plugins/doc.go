// Package plugins has the verbs below `sentinel plugin`: permissions, packages and
// signatures, and the development of step plugins.
package plugins
