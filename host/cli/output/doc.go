// Package output writes text for people and JSON for programs.
//
// A [Printer] accepts only [termtext.Text]: a value from elsewhere is escaped first, by
// [Escape], [Clip] or as an argument of [Printer.Printf], and the compiler rejects a
// plain string. Section S10 of host/SERVE.md has the rules.
package output
