package cli

import "github.com/sentinel-runtime/sentinel/host/owner"

var (
	Clip      = clip
	Duration  = duration
	Grouped   = grouped
	Quoted    = quoted
	Printable = printable
	Choose    = choose
	ValueOf   = valueOf
	EventOf   = eventOf
	ReadEvent = readEvent
	Table     = table
	FieldLess = compareFields
)

// Params makes a command's parameters of a command line.
func Params(schema []byte, args ...string) ([]byte, error) {
	return (&app{}).params(owner.Command{Name: "c", Input: schema}, args)
}
