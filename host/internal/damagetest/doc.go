// Package damagetest serves damaged stores. The tests damage the database file of a
// state folder as disks do, before a process opens it and while it has it open.
// Each of these processes serves everything that was in the store, or says what may
// be missing, or refuses with a message that names the repair; none ends in a stack
// trace. What was refused is repaired and served.
//
// The test program runs itself as the program sentinel. The long form damages 400
// copies of a store of 50 MB.
package damagetest
