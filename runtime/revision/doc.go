// Package revision describes stored revisions of definitions to those who save, list
// and import them: a revision ([Stored]), how it is saved ([SaveOptions]), what
// followers are notified of ([Change]), and definitions that come from another store
// ([Incoming], [Imported]).
//
// It has no behaviour; package runtime stores definitions. A definition's revisions
// count from 1, also over its deletion, which is a revision without a definition: a
// tombstone. The newest revision is the head.
package revision
