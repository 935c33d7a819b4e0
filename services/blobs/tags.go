package blobs

import (
	"cmp"
	"slices"
	"strings"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// Limits of a tag, in characters, which are all ASCII (protocol/blob.md 9.4).
const (
	tagNameMax  = 128
	tagValueMax = 256
)

// CheckTags returns the tags in the order in which they are stored, or the error of a set of tags that no blob can have.
func CheckTags(sent []Pair) ([]Pair, error) {
	if len(sent) > TagsMax {
		return nil, storageerr.TagsTooLarge
	}
	tags := slices.Clone(sent)
	slices.SortFunc(tags, func(a, b Pair) int { return cmp.Compare(a.Name, b.Name) })
	for i, t := range tags {
		switch {
		case t.Name == "":
			return nil, storageerr.EmptyTagName
		case len(t.Name) > tagNameMax || len(t.Value) > tagValueMax:
			return nil, storageerr.TagsTooLarge
		case !inTag(t.Name) || !inTag(t.Value):
			return nil, storageerr.InvalidTag
		case i > 0 && tags[i-1].Name == t.Name:
			return nil, storageerr.DuplicateTagNames
		}
	}
	return tags, nil
}

// inTag reports whether a text has the characters of tags alone.
func inTag(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(" +-./:=_", c)
	})
}

// SetTags is Set Blob Tags (protocol/blob.md B7): it replaces all of them, of an archived blob too. It leaves ETag and
// Last-Modified.
type SetTags struct {
	Command
	// Tags are as CheckTags returns them; nothing clears them.
	Tags []Pair
}

// Evaluate implements services.Write.
func (w *SetTags) Evaluate(get kv.Getter, _ geo.Timestamp) (services.Effect, error) {
	b, err := GetBlob(get, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	if err := w.check(false, true, &b); err != nil {
		return services.Effect{}, err
	}
	b.Tags, b.Lease = w.Tags, b.Lease.Written(w.now)
	return b.effect()
}
