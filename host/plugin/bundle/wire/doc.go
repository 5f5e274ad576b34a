// Package wire is how STEP PLUGINS come over a network: https only, few redirects,
// no request without a time limit, and no response larger than its limit.
//
// It is for what an operator names by hand. Requests that plugins make have an
// allow-list and a check of addresses; these have not, since the operator may well
// mean a server of the company.
package wire
