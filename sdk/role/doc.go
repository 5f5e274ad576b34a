// Package role has the contracts between the host and step types that have a role, clause
// A9 of ABI.md: for each role the fields that the host gives, the output that it expects,
// and the checks of both.
//
//   - [CheckFields] tests whether the schema of a step type accepts what the host gives.
//   - [CheckOutput] tests an output, as `sentinel plugin test` does for each case.
//   - ReadErrorClass, ReadLineClasses and ReadReply decode an output within limits.
//
// Outputs come from plugins and are hostile: everything that is decoded is bounded, and a
// key that the contract does not have is ignored.
package role
