//go:build !plantedbugs

package plantedbugs

// Planted reports whether b is planted: never in this build.
func Planted(Bug) bool { return false }
