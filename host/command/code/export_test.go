package code

// Markers are the files by which code/verify knows the kind of a project.
func Markers() (list []string) {
	for _, k := range kinds {
		list = append(list, k.marker)
	}
	return list
}
