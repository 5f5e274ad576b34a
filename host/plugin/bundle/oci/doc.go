// Package oci packs STEP PLUGINS the way container registries keep things: as an
// artifact of the OCI image format, in a tar file or in a registry.
//
// An artifact is a manifest of type [ArtifactType] with the plugin's own manifest
// as its config, the module as its first layer and, if it is signed, the signature
// as its second. Everything is named by its digest, so the digest of the manifest
// names all of it. The same plugin packs to the same bytes everywhere.
//
// What is read is hostile until its digests are checked: sizes and counts are
// bounded before anything is read, nothing is unpacked to a disk, and nothing is
// decompressed.
package oci
