package grant

import "errors"

// errOvertaken says that the entry is another one by now.
var errOvertaken = errors.New("the entry has changed")
