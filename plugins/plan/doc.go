// Package plan implements the step type for plans that a model makes: a list of calls of
// commands, with references from one to the outputs of others.
//
// Which fields a step has decides what it does:
//
//	skills                     lists the skills, as data and as a text for the prompt
//	skills, plan, failed       checks a plan and orders its steps
//	step, results              resolves the references of one step
//	step, results, outcome     records what a step did
//
// It calls no skill. A definition does, with steps of type command, so that anyone can read
// and change what happens between planning and acting.
package plan
