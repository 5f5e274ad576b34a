package sentinels

// Check returns what is probably not as meant in a valid definition, as
// problems of [KindWarning] without line and column; see [Problems.Locate].
// known are names of variables that the caller will set.
func Check(d *Definition, types *TypeSet, known ...string) Problems { return nil }

// Locate returns ps with the lines and columns of their paths in src.
func (ps Problems) Locate(file string, src []byte) Problems { return ps }
