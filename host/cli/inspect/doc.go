// Package inspect has the verbs that list and show: sentinels, runs, traces, triggers
// and events.
package inspect
