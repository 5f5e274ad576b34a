// Package termtext makes foreign text safe to print on a terminal or to write
// into a line-based log.
//
// Foreign text is everything this program did not write itself: definition and
// file names, plugin manifests, model output, program output, event data, error
// messages. Printed raw, an escape sequence in it erases or forges lines, a line
// feed starts a line that looks like one of ours, and a bidirectional control
// character reverses the reading order.
//
// The package escapes such characters visibly (\x1b, \u202e, \n). All other text
// stays as it is, including emoji and scripts written from right to left. The
// escaping is for readers: a backslash in the text is not escaped, so the result
// cannot be decoded.
//
// # Text and string
//
// [Text] is text that may be printed as it is. Values become Text only through
// [Line], [Block] and [Sprintf], which escape them; untyped constants convert by
// themselves. A printer that takes Text therefore cannot print a raw value by
// mistake: the compiler rejects a string.
//
// JSON is for programs, and [JSON] changes no value: it only chooses another
// spelling for characters inside strings.
package termtext
