package document

// AppendOrdered is tested against the order of values.
var AppendOrdered = appendOrdered
