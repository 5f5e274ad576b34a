package grant

import "errors"

// errOvertaken is the error of an entry that has changed in between.
var errOvertaken = errors.New("the entry has changed")
