package statefolder

// VerifyInChild checks a store in a child alone.
var VerifyInChild = verifyInChild
