// Package content records which content of a project's folder the user trusts.
//
// A folder that was cloned or unpacked can hold definitions, recipes, plugins and a
// store that others wrote. They would be executed with the rights of the user, so
// they count only after the user has trusted them. Package trust decides by owners and
// modes, which say nothing about files that the user's own git wrote.
//
// # What counts
//
//  1. Content that was trusted by the verb `sentinel trust` or by an answer to its
//     question, for its path in the folder.
//  2. All content of a folder below one of [Options.Roots].
//  3. In a folder that is known: content that the user edits or adds. A folder is known
//     when the user has trusted it, or when a verb of this program created it. What was
//     there before and is not trusted is held, and stays held when it is edited.
//  4. A path that git tracks is edited by the user only while the index of the repository
//     has content that counts. A pull, a checkout or a merge changes the index, and then the
//     path is held until it is trusted, whatever the file holds: git converts what it writes.
//     So is other content that git wrote for an index entry that counts, by the time of the
//     file in the index: attributes, filters and encodings that a commit switches on convert
//     what was trusted. While the attributes filter, ident or working-tree-encoding are set for
//     a path, no edit of it counts, since it may be one of converted content.
//     So is content that the repository has as an object. What the user edited, tried and
//     committed was seen before the commit and counts.
//
// A store in the folder counts if this user's host created it there, or if it was
// trusted: both have its random identity in their record, and that of the store itself. It does
// not while git tracks a file of it. Files of variables that definitions name count like
// definitions if git tracks them.
//
// # Limits
//
// In a known folder without git, or in one that another program writes to (rsync, a sync
// service, an archive unpacked over it), changed content looks like an edit and counts. So
// does converted content of a checkout that was interrupted before it wrote the index, and an
// edit of converted content that no reader saw before a second pull removed the attributes,
// unless the index has no time of the file: then no edit counts in a repository of which a
// commit has set or removed such an attribute.
//
// # Records
//
// The records are in the user's configuration folder, where no project and no step can
// put anything, one folder per project and one file per content. Moving a project makes
// it unknown.
package content
