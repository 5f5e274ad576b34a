package code

// Markers returns the files by which code/verify recognizes the kind of a project.
func Markers() (list []string) {
	for _, k := range kinds {
		list = append(list, k.markers...)
	}
	return list
}

var NearText = nearText
