// Package plugin describes step plugins to those who load, list and allow them:
// where a plugin comes from ([Source]), what is known of it ([Info]), what it asks
// for ([Permission]) and what the operator allows it ([Grant]).
//
// It has no behaviour but the comparison of permissions with grants; package runtime loads
// and executes plugins. The JSON forms are those of the commands plugin/list and
// plugin/allow.
package plugin
