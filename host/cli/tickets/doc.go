// Package tickets has the verbs of tickets. Each calls one of the commands ticket/*.
package tickets
